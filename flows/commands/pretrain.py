"""`nightschool pretrain`: train a small student from scratch, for `student.source: {new: 5M}`."""

from typing import Annotated

import typer
from rich.progress import Progress

from conf.schema import NEW_SIZES
from conf.storage.home import Home, InputError
from conf.storage.locks import hold
from flows.commands.options import AsJson, print_json


def pretrain(
    size: Annotated[str, typer.Argument(help=f"number of weights: {', '.join(NEW_SIZES)}")],
    tokens: Annotated[int | None, typer.Option(min=1, help="tokens to read; default: 1 to 40 million, by size")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="of weights, texts and batches")] = 1,
    as_json: AsJson = False,
) -> None:
    """Pretrain a new student on generated texts and, with NIGHTSCHOOL_DATA, on GSM8K's and MATH's. It can be resumed.

    The student is kept in the home, with its curve (curve.jsonl). A night whose student.source is {new: SIZE} starts
    from it.
    """
    if size not in NEW_SIZES:
        raise InputError(f"there is no size {size}; choose from {', '.join(NEW_SIZES)}")
    from tasks.pretraining.pretrain import TOKENS, pretrain

    home = Home.here()
    folder = home.students / size
    with hold(home.root, "nightschool pretrain"), Progress(disable=as_json) as progress:
        task = progress.add_task("reading")
        for figures in pretrain(folder, size, tokens or TOKENS[size], seed):
            what = f"loss {figures['loss']:.2f} nats a token"
            progress.update(task, total=figures["steps"], completed=figures["step"], description=what)
    if as_json:
        print_json({"student": str(folder)})
        return
    how = f"nightschool night --set name=new-{size.lower()} --set 'student.source={{new: {size}}}'"
    print(f"The student is in {folder}; to train it: {how}")
