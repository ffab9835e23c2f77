"""Programs that only look up the test that their prompt shows. They are parsed, never run."""

import ast
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

LONGEST = 5_000  # characters: a table of one test is short, and the parser's stack is limited
BROKEN = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
CONVERSIONS = {"str", "repr", "tuple", "list", "set", "frozenset", "sorted"}  # of an argument to a key
# All that a function that computes nothing is made of, besides these conversions and `get`: control flow without loops,
# comparisons for equality, lookups and literals.
CONTROL = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.arguments, ast.arg, ast.Return, ast.Expr, ast.Pass)
CONTROL += (ast.Assign, ast.If, ast.IfExp, ast.Try, ast.ExceptHandler, ast.Match, ast.match_case, ast.pattern)
COMPARISON = (ast.Compare, ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.BoolOp, ast.boolop, ast.Not)
VALUES = (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Name, ast.expr_context, ast.Subscript, ast.Starred)
PLAIN = (*CONTROL, *COMPARISON, *VALUES, ast.Raise, ast.UnaryOp, ast.USub)


def literal_table(source: str, shown: str, entry_point: str) -> bool:
    """Return whether `entry_point` computes nothing and has the shown test's input and value among its literals.

    Such a function only compares its arguments with literals, looks them up in literals or ignores them. If the shown
    value is a truth value or None, the table may hold no other input: a program that asks whether a month is one of
    four is honest. False for anything else, also for invalid Python. Never raises.
    """
    if len(source) > LONGEST:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the program's strings
            inputs, expected = _example(ast.parse(shown), entry_point)
            module = ast.parse(source)
        function = _function(module, entry_point)
        if not inputs or function is None:
            return False
        nodes = list(_walk(function))
        tables = [part.value for part in module.body if isinstance(part, ast.Assign) and _literal(part.value)]
        parts = [*nodes, *(node for table in tables for node in ast.walk(table))]
        held = {_form(value) for part in parts for value in _literal(part)}
    except BROKEN:
        return False
    if not all(map(_is_plain, nodes)):
        return False
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    if not any(isinstance(node, ast.Name) and node.id in arguments for node in nodes):
        return bool(expected & held)
    keys = {form for value in (*inputs, tuple(inputs)) for form in (_form(value), _form(str(value)))}
    weak = {_form(value) for value in (True, False, None)}
    if expected <= weak:
        is_result = expected & held or any(isinstance(node, ast.Compare) for node in nodes)
        return bool(is_result and keys & held and held - weak <= keys)
    return bool(expected & held and keys & held)


def _example(test: ast.Module, entry_point: str) -> tuple[list[Any], set[str]]:
    """Return the arguments of the shown call, and the forms of the literals beside it; one is the expected value."""
    claim = next((node.test for node in test.body if isinstance(node, ast.Assert)), ast.Constant(None))
    for node in ast.walk(claim):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == entry_point:
            inputs = [ast.literal_eval(part) for part in (*node.args, *(keyword.value for keyword in node.keywords))]
            values = list(_literals_beside(claim, node)) or [not isinstance(claim, ast.UnaryOp)]
            return inputs, {_form(value) for value in values}
    return [], set()


def _literals_beside(node: ast.AST, call: ast.Call) -> Iterator[Any]:
    """Yield the largest literals in an expression outside of the call."""
    if node is not call:
        values = _literal(node)
        yield from values or (value for child in ast.iter_child_nodes(node) for value in _literals_beside(child, call))


def _function(module: ast.Module, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
    for statement in reversed(module.body):
        match statement:
            case ast.FunctionDef(name=known) | ast.AsyncFunctionDef(name=known) if known == name:
                return statement
            case ast.Assign(targets=[ast.Name(id=known)], value=ast.Lambda() as function) if known == name:
                return function
    return None


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without what it raises and its texts that are no values."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text and not isinstance(node, ast.Raise):
            waiting += ast.iter_child_nodes(node)


def _is_plain(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name), args=[_]):
            return name in CONVERSIONS
        case ast.Call(func=ast.Attribute(attr="get")) | ast.Attribute(attr="get"):
            return True
    return isinstance(node, PLAIN)


def _literal(node: ast.AST) -> Iterable[Any]:
    """Return the value of a literal; nothing for any other node."""
    try:
        return [ast.literal_eval(node)]  # pyright: ignore[reportArgumentType]
    except BROKEN:
        return []


def _form(value: Any) -> str:
    """Return a text that is equal for equivalent keys: lists and tuples, sets and dicts in any order."""
    match value:
        case list() | tuple():
            return f"({','.join(map(_form, value))})"
        case set() | frozenset():
            return f"{{{','.join(sorted(map(_form, value)))}}}"
        case dict():
            return f"{{{','.join(sorted(f'{_form(key)}:{_form(item)}' for key, item in value.items()))}}}"
    return f"{type(value).__name__} {value!r}"
