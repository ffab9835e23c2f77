"""The classroom in a terminal, for example over ssh: the owner asks and teaches by typing lines of text."""

import asyncio
import threading
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel

from conf.storage.home import InputError
from flows.teaching.answers import RefusedError
from flows.teaching.chats import Chats
from flows.teaching.classroom import Classroom

HELP = """[bold]Type a question[/bold], and five answers are written. Then:
  [bold]1[/bold] … [bold]5[/bold]       pick that answer          [bold]0[/bold]           none is good
  [bold]+2[/bold]  [bold]-2[/bold]       answer 2 is good, bad     [bold]e2 TEXT[/bold]     correct it: this is better
  [bold]x2 WORD[/bold]      answer 2 is wrong from this word on
  [bold]r[/bold]  five others   [bold]z[/bold]  undo the last lesson   [bold]w TEXT[/bold]  give it a text to read
  [bold]?[/bold]  this help     [bold]q[/bold]  quit. It learns at once; the night studies it properly.
In a chat (--chat), one answer is written, number 1, and your next message goes on from it.
  [bold]t[/bold]  teach the correction that was proposed      [bold]n[/bold]  begin a new conversation"""


def run(classroom: Classroom, chat: bool) -> None:
    """Run the classroom in this terminal until the owner quits."""
    asyncio.run(Terminal(classroom, Console(), chat=chat).run())


class Terminal:
    """A classroom session in a terminal."""

    def __init__(
        self, classroom: Classroom, console: Console, read: Callable[[str], str] = input, chat: bool = False
    ) -> None:
        """`read`: a function that shows a prompt and returns a line, or raises EOFError at the end of the input."""
        self.classroom, self.console, self.read = classroom, console, read
        self.chats = Chats(classroom) if chat else None
        self.conversation, self.proposal = "", dict[str, str]()
        self.asked, self.question = "", ""  # the last question's text, and its name for asking it again
        self.shown: list[str] = []  # the id of each answer

    async def run(self) -> None:
        """Read and run commands until `q` or the end of the input."""
        self.console.print(HELP)
        while True:
            try:
                line = (await self._line()).strip()
            except EOFError:
                return
            except UnicodeDecodeError:
                self.console.print("[red]this line is not UTF-8: type it again[/red]")
                continue
            if line == "q":
                return
            try:
                await self._do(line)
            except (RefusedError, InputError) as error:
                self.console.print(f"[red]{escape(str(error))}[/red]")

    async def _line(self) -> str:
        """Return the next line. A daemon thread reads it, so that waiting for input does not keep the program alive."""
        loop, line = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

        def wait() -> None:
            try:
                loop.call_soon_threadsafe(line.set_result, self.read("> "))
            except (EOFError, UnicodeDecodeError) as error:
                loop.call_soon_threadsafe(line.set_exception, error)

        threading.Thread(target=wait, daemon=True).start()
        return await line

    async def _do(self, line: str) -> None:
        command, rest = line[:1], line[1:].strip()
        number, _, text = rest.partition(" ")
        lessons = self.classroom.state()["lessons"]
        if line in ("", "?"):
            self.console.print(HELP)
        elif line == "r" and self.asked:
            await self._ask(self.asked, self.question)
        elif line == "t" and self.proposal:
            taught = await self.classroom.teach("correct", self.proposal["answer"], self.proposal["text"])
            self.proposal = {}
            self._tell(taught)
        elif line == "n" and self.chats:
            self.conversation, self.proposal, self.shown = "", {}, []
        elif line == "z" and lessons:
            await self.classroom.undo(lessons[0]["id"])
            self.console.print("Undone.")
        elif line == "0" and self.shown:
            await self._teach("none", 1)
        elif line.isdecimal() and len(line) == 1 and self.shown:
            await self._teach("pick", int(line))
        elif command in "+-" and number.isdecimal() and not text:
            await self._teach("praise" if command == "+" else "blame", int(number))
        elif command == "e" and number.isdecimal() and text:
            await self._teach("correct", int(number), text)
        elif command == "x" and number.isdecimal() and text:
            _, answer = self.classroom.questions.named(self._answer(int(number)))
            if (start := answer.better.find(text)) < 0:
                raise RefusedError(400, f"answer {number} has no {text!r}")
            await self._teach("wrong_from", int(number), from_char=start)
        elif command == "w" and line[1:2] == " ":
            self._tell(await self.classroom.teach("words", text=rest))
        else:
            await self._ask(line)

    async def _ask(self, text: str, again: str = "") -> None:
        texts: dict[str, str] = {}
        chats = None if again else self.chats
        events = chats.say(text, self.conversation) if chats else self.classroom.ask(text, again=again)
        self.asked, self.question, self.shown, held_out = text, again, [], False
        with Live(console=self.console, refresh_per_second=8) as live:
            async for name, data in events:
                if name == "answer":
                    texts[data["answer"]] = texts.get(data["answer"], "") + data["delta"]
                else:
                    answers = [data["answer"]] if chats else data["answers"]
                    texts = {answer["id"]: answer["text"] for answer in answers}
                    held_out, self.proposal = data["held_out"], data.get("proposal", {})
                    self.conversation = data.get("conversation", self.conversation)
                    self.question = data["question"]
                numbered = enumerate(map(escape, texts.values()), 1)
                live.update(Group(*(Panel(text, title=f"{number}", title_align="left") for number, text in numbered)))
        self.shown = [*texts]
        if self.proposal:
            self.console.print(f"Teach this as a correction? {escape(self.proposal['text'])}  [bold]t[/bold]: yes")
        if held_out:
            self.console.print("[dim]Held out: what you say about this question is never learned.[/dim]")

    async def _teach(self, kind: str, number: int, text: str = "", from_char: int = -1) -> None:
        answer = self._answer(number)
        self._tell(await self.classroom.teach(kind, answer, text, from_char))  # pyrefly: ignore[bad-argument-type]

    def _answer(self, number: int) -> str:
        if not 1 <= number <= len(self.shown):
            raise RefusedError(404, f"there is no answer {number}")
        return self.shown[number - 1]

    def _tell(self, lesson: dict[str, object]) -> None:
        if not lesson["learned"]:
            self.console.print(f"Saved, not learned by day: {escape(str(lesson['why']))}")
            return
        guessed = self.classroom.state()["guessed"]
        took = "" if lesson["seconds"] is None else f" in {lesson['seconds']:.1f} s"  # unknown after a crash
        line = f"Learned{took} · {lesson['change_nats']:+.1f} nats"
        if guessed["of"]:
            line += f" · it guessed {guessed['right']} of your last {guessed['of']} picks"
        self.console.print(line)
