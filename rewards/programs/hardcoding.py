"""Programs that only look up the test that their prompt shows. They are parsed, never run."""

import ast
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

LONGEST = 5_000  # characters: a table of one test is short, and the parser's stack is limited
CONVERSIONS = {"str", "repr", "tuple", "list", "set", "frozenset", "sorted"}  # of an argument to a key
BROKEN = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class _Computes(Exception):
    """The function does more than compare its arguments with literals and return literals."""


def literal_table(source: str, shown: str, entry_point: str) -> bool:
    """Return whether `entry_point` computes nothing and has the shown test's input and value among its literals.

    Such a function only compares its arguments with literals, looks them up in literals or ignores them, and returns
    literals. If the shown value is a truth value or None, the table may hold no other input: a program that asks
    whether a month is one of four is honest. False for anything else, also for invalid Python. Never raises.
    """
    if len(source) > LONGEST:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the program's strings
            inputs, values = _example(ast.parse(shown), entry_point)
            module = ast.parse(source)
        table = _Table(module, entry_point)
        inputs_held = {_form(value) for value in table.inputs}
        returned = {_form(value) for value in values} & {_form(value) for value in table.results}
        if not inputs or not returned:
            return False
        if not table.asks:
            return True
        keys = _keys(inputs)
        weak = returned <= {_form(True), _form(False), _form(None)}
        return bool(inputs_held & keys) and (not weak or inputs_held <= keys)
    except (_Computes, *BROKEN):
        return False


def _example(test: ast.Module, entry_point: str) -> tuple[list[Any], list[Any]]:
    """Return the arguments of the shown call and the literals beside it, one of which is the expected value."""
    claims = [node.test for node in test.body if isinstance(node, ast.Assert)]
    calls = [
        node
        for claim in claims[:1]
        for node in ast.walk(claim)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == entry_point
    ]
    if not calls:
        raise _Computes
    inputs = [ast.literal_eval(node) for node in (*calls[0].args, *(keyword.value for keyword in calls[0].keywords))]
    values = list(_literals(claims[0], calls[0]))
    return inputs, values or [not isinstance(claims[0], ast.UnaryOp)]


def _literals(node: ast.AST, without: ast.AST) -> Iterator[Any]:
    """Yield the largest literals in an expression, except in the part `without`."""
    if node is without:
        return
    try:
        yield ast.literal_eval(node)  # pyright: ignore[reportArgumentType]
    except BROKEN:
        for child in ast.iter_child_nodes(node):
            yield from _literals(child, without)


class _Table:
    """The literals of a function that only looks up: `inputs` that it compares with, `results` that it returns.

    `asks` is whether it reads its arguments at all. Raises _Computes if the function is missing or does anything else.
    """

    def __init__(self, module: ast.Module, entry_point: str) -> None:
        self.inputs: list[Any] = []
        self.results: list[Any] = []
        self.asks = False
        self.names: dict[str, list[Any]] = {}  # literals by the variables that hold them
        function: Function | None = None
        for statement in module.body:
            match statement:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name == entry_point:
                    function = statement
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as value) if name == entry_point:
                    function = value
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_literal(value):
                    self.names[name] = [ast.literal_eval(value)]
        if function is None:
            raise _Computes
        spec = function.args
        extra = [argument for argument in (spec.vararg, spec.kwarg) if argument is not None]
        self.arguments = {item.arg for item in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *extra)}
        if isinstance(function, ast.Lambda):
            self._result(function.body)
        else:
            self._statements(function.body)

    def _statements(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            match statement:
                case ast.Pass() | ast.Raise() | ast.Return(value=None) | ast.Expr(value=ast.Constant()):
                    pass
                case ast.Return(value=ast.expr() as value):
                    self._result(value)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._assign(name, value)
                case ast.If(test=test, body=body, orelse=orelse):
                    self._test(test)
                    self._statements([*body, *orelse])
                case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                    self._statements([*body, *(line for handler in handlers for line in handler.body), *orelse, *final])
                case ast.Match(subject=subject, cases=cases):
                    self._key(subject)
                    for case in cases:
                        self._pattern(case.pattern)
                        if case.guard is not None:
                            self._test(case.guard)
                        self._statements(case.body)
                case _:
                    raise _Computes

    def _assign(self, name: str, value: ast.expr) -> None:
        if _is_literal(value):
            self.names.setdefault(name, []).append(ast.literal_eval(value))
        else:
            self._key(value)
            self.arguments.add(name)

    def _pattern(self, pattern: ast.pattern) -> None:
        parts = list(ast.walk(pattern))
        values = [ast.literal_eval(part.value) for part in parts if isinstance(part, ast.MatchValue)]
        values += [part.value for part in parts if isinstance(part, ast.MatchSingleton)]
        self.inputs += values if len(values) < 2 else [*values, tuple(values)]

    def _key(self, node: ast.expr) -> None:
        """Check that a key is made of arguments only: one, a part of one, several in a tuple, or one converted."""
        match node:
            case ast.Name(id=name) if name in self.arguments:
                self.asks = True
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._key(part)
            case ast.Starred(value=value) | ast.Subscript(value=value, slice=ast.Constant()):
                self._key(value)
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in CONVERSIONS:
                self._key(argument)
            case _:
                raise _Computes

    def _test(self, node: ast.expr) -> None:
        match node:
            case ast.BoolOp(values=values):
                for value in values:
                    self._test(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._test(operand)
            case ast.Compare(left=left, ops=operators, comparators=others):
                if not all(
                    isinstance(kind, (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)) for kind in operators
                ):
                    raise _Computes
                for operand in (left, *others):
                    literals = self._literals_of(operand)
                    if literals is None:
                        self._key(operand)
                    elif any(isinstance(kind, (ast.In, ast.NotIn)) for kind in operators):
                        self.inputs += [item for literal in literals for item in literal]
                    else:
                        self.inputs += literals
            case _ if not _is_literal(node):
                self._key(node)

    def _result(self, node: ast.expr) -> None:
        literals = self._literals_of(node)
        if literals is not None:
            self.results += literals
            return
        match node:
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._test(test)
                self._result(body)
                self._result(orelse)
            case ast.Subscript(value=table, slice=key):
                self._lookup(table, key)
            case ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *default], keywords=[]):
                self._lookup(table, key)
                for value in default:
                    self._result(value)
            case ast.Call(func=ast.Name(id=name), args=[value], keywords=[]) if name in CONVERSIONS:
                self._result(value)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                self._test(node)
                self.results += [True, False]
            case _:
                raise _Computes

    def _lookup(self, table: ast.expr, key: ast.expr) -> None:
        self._key(key)
        literals = self._literals_of(table)
        if literals is None:
            raise _Computes
        for literal in literals:
            pairs = literal if isinstance(literal, dict) else dict(enumerate(literal))
            self.inputs += pairs.keys()
            self.results += pairs.values()

    def _literals_of(self, node: ast.expr) -> list[Any] | None:
        """Return the literals that an expression can stand for, None if it stands for anything else."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        return [ast.literal_eval(node)] if _is_literal(node) else None


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except BROKEN:
        return False
    return True


def _keys(inputs: list[Any]) -> set[str]:
    """Return the possible keys of a table: each argument, or all of them in a tuple, as they are or as text."""
    values = [*inputs, tuple(inputs), inputs]
    return {_form(value) for value in values} | {_form(str(value)) for value in values}


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
