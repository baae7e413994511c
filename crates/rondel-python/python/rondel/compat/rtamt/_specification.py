"""Specifications with the interface of RTAMT."""

from __future__ import annotations

import importlib
import logging
import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from . import _dense, _discrete
from ._formula import FUTURE, Bounds, Node, Place, RTAMTException
from ._options import Language, Semantics
from ._parser import Assertion, Bound, Declaration, Names, Parser
from ._pastify import horizon, pastify
from ._plan import Planner, Stage

UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
_NUMBERS: dict[str, type] = {"float": float, "int": int, "long": int, "real": float, "bool": bool}
class _Specification:
    """Declarations, formulas and the values of variables; the subclasses evaluate."""

    _MODEL: Any = "steps"

    def __init__(self, semantics: Any = Semantics.STANDARD, language: Any = Language.PYTHON) -> None:
        self.name = "Abstract Specification"
        self.spec = ""
        self.unit = "s"
        self.out_var = "out"
        self.out_var_field = ""
        self.var_type_dict: dict[str, str] = {}
        self.var_io_dict: dict[str, str] = {}
        self.var_topic_dict: dict[str, str] = {}
        self.var_object_dict: dict[str, Any] = {}
        self.modules: dict[str, Any] = {}
        #: The values of variables before their first samples.
        self._initial: dict[str, Any] = {}
        self._semantics = semantics if isinstance(semantics, Semantics) else Semantics.STANDARD
        self._constants: dict[str, float] = {}
        self._texts: list[str] = []
        self._assertions: list[Assertion] = []
        self._is_parsed = False
        self._stages: list[Stage] | None = None

    @property
    def vars(self) -> set[str]:
        """The names of variables and constants."""
        return {*self.var_type_dict, *self._constants}

    @property
    def free_vars(self) -> set[str]:
        """The variables that no formula assigns."""
        return set(self.var_type_dict) - {assertion.name for assertion in self._assertions}

    def declare_var(self, var_name: str, var_type: str) -> None:
        """Declares a variable of a type: ``float``, ``int``, or one that :meth:`import_module` imported."""
        if var_name in self.var_type_dict:
            logging.warning("variable %s was already declared; the new declaration replaces it", var_name)
        if var_type not in _NUMBERS and var_type not in self.modules:
            raise RTAMTException(f"the type '{var_type}' of '{var_name}' is unknown: import it with import_module")
        make = _NUMBERS.get(var_type) or getattr(self.modules[var_type], var_type)
        self.var_type_dict[var_name] = var_type
        self.var_io_dict[var_name] = "output"
        self.var_topic_dict[var_name] = f"rtamt/{var_name}"
        self.var_object_dict[var_name] = self._initial[var_name] = make()

    def declare_const(self, const_name: str, const_type: str, const_val: Any) -> None:
        """Declares a constant; its value is a number or the text of one."""
        if const_name in self.vars:
            raise RTAMTException(f"constant '{const_name}' was already declared")
        self._constants[const_name] = float(const_val)

    def set_var_io_type(self, var: str, io_type: str) -> None:
        """Sets the direction of a variable: ``input`` or ``output``."""
        if var not in self.var_type_dict:
            logging.warning("variable %s is not declared", var)
            return
        self.var_io_dict[var] = io_type if io_type in ("input", "output") else "undefined"

    def set_var_topic(self, var_name: str, var_topic: str) -> None:
        """Sets the topic of a variable, for programs that read it from ``var_topic_dict``."""
        if var_name not in self.var_type_dict:
            logging.warning("variable %s is not declared", var_name)
            return
        self.var_topic_dict[var_name] = var_topic

    def import_module(self, from_name: str, module_name: str) -> None:
        """Imports a type of variables from a module."""
        try:
            self.modules[module_name] = importlib.import_module(from_name)
        except ImportError as error:
            raise RTAMTException(f"cannot import module '{from_name}': {error}") from error

    def add_sub_spec(self, sub_spec: str) -> None:
        """Adds a named formula, which later ones may use by its name."""
        self._texts.append(sub_spec)

    def get_spec_from_file(self, path: str) -> str:
        """The text of a file."""
        if not os.path.exists(path):
            raise RTAMTException(f"the file {path} does not exist")
        with open(path, encoding="utf-8") as file:
            return file.read()

    def get_value(self, var_name: str) -> Any:
        """The last value of a variable, or of a named formula; after ``evaluate`` all of them."""
        return self.var_object_dict[var_name]

    def parse(self) -> None:
        """Reads the specification."""
        if not self.spec or not self.spec.strip():
            raise RTAMTException("the specification is empty: set `spec`")
        names = Names(
            is_variable=self._is_variable,
            variables=lambda: list(self.var_type_dict),
            types=self.modules,
            constants=self._constants,
            formulas={},
            bounds=self._bounds,
            declare=self._declare,
        )
        self._assertions = []
        for text in [*self._texts, self.spec]:
            self._assertions.extend(Parser(text, names).assertions())
        result = self._assertions[-1].name or "out"
        self.out_var, _, self.out_var_field = result.partition(".")
        self.var_object_dict.setdefault(self.out_var, 0.0)
        self._is_parsed = True
        self._restart()

    def pastify(self) -> None:
        """Replaces formulas of the future by those of the past that have the same values later."""
        self._check_parsed()
        self._assertions = [Assertion(name, pastify(formula)) for name, formula in self._assertions]
        self._restart()

    def reset(self) -> None:
        """Forgets all samples."""
        self._restart()

    @property
    def rondel(self) -> str:
        """The specifications of Rondel that are evaluated; the last one has the result."""
        return "\n".join(stage.specification for stage in self._result.all())

    @property
    def _result(self) -> Stage:
        return self._planned()[-1]

    def _planned(self) -> list[Stage]:
        """The stages with the values of all formulas, the last one with that of the specification."""
        self._check_parsed()
        if self._stages is None:
            planner = Planner(self._MODEL, self._semantics.value, self.var_io_dict)
            self._stages = [planner.plan(assertion.formula) for assertion in self._assertions]
        return self._stages

    def _check_parsed(self) -> None:
        if not self._is_parsed:
            raise RTAMTException("the specification was not parsed: call parse() first")

    def _check_online(self) -> None:
        for assertion in self._assertions:
            _check_past(assertion.formula)

    def _restart(self) -> None:
        self._stages = None

    def _is_variable(self, name: str, place: Place) -> bool:
        head, _, field = name.partition(".")
        kind = self.var_type_dict.get(head)
        if kind is None:
            return False
        if not field:
            if kind not in _NUMBERS:
                raise place.error(f"'{name}' is a {kind}, not a number: name a field of it, as '{name}.value'")
            return True
        try:
            value = operator.attrgetter(field)(self.var_object_dict[head])
        except AttributeError:
            raise place.error(f"'{head}' is a {kind} and has no field '{field}'") from None
        if not isinstance(value, (int, float)):
            raise place.error(f"the field '{field}' of '{head}' is not a number")
        return True

    def _declare(self, declaration: Declaration) -> None:
        words = declaration.words
        try:
            if declaration.kind == "variable":
                direction, kind, name = words
                if name not in self.var_type_dict or self.var_type_dict[name] != kind:
                    self.declare_var(name, kind)
                self.set_var_io_type(name, direction)
            elif declaration.kind == "const" and words[1] not in self._constants:
                self.declare_const(words[1], words[0], words[2])
            elif declaration.kind == "import":
                self.import_module(words[0], words[1])
            elif declaration.kind == "topic":
                self.set_var_topic(words[0], words[1])
            elif declaration.kind == "specification":
                self.name = words[0]
        except RTAMTException as error:
            raise declaration.place.error(error.message) from error

    def _bounds(self, begin: Bound, end: Bound) -> Bounds:
        """Two bounds in the unit of the model. A bound without a unit has that of the other one."""
        units = (begin.unit or end.unit or self.unit, end.unit or begin.unit or self.unit)
        return self._bound(begin, units[0]), self._bound(end, units[1])

    def _bound(self, bound: Bound, unit: str) -> int:
        length = bound.value * UNITS[unit]
        if length.denominator != 1:
            raise bound.place.error("a bound is a whole number of nanoseconds")
        return int(length)

    def _read(self, name: str, source: Any) -> float:
        """The number that a name reads from the object of its variable."""
        if "." in name:
            source = operator.attrgetter(name.partition(".")[2])(source)
        try:
            return float(source)
        except (TypeError, ValueError):
            raise RTAMTException(f"the value of '{name}' is {source!r}, not a number") from None

    def _lack(self, names: Iterable[str], given: Iterable[str]) -> str:
        """A sentence about variables without samples, and the given names that are not declared."""
        lacking = ", ".join(f"'{name}'" for name in sorted(names))
        unknown = ", ".join(f"'{name}'" for name in given if name not in self.var_type_dict)
        return f"there are no samples of {lacking}" + (f"; not declared: {unknown}" if unknown else "")

    def _store(self, values: Iterable[Any]) -> None:
        """Keeps the values of the named formulas."""
        for assertion, value in zip(self._assertions, values):
            head, _, field = (assertion.name or "out").partition(".")
            if not field:
                self.var_object_dict[head] = value
            elif head in self.var_object_dict:
                setattr(self.var_object_dict[head], field, value)


class StlDiscreteTimeSpecification(_Specification):
    """A specification over samples with a fixed period."""

    _MODEL = "steps"

    def __init__(self, semantics: Any = Semantics.STANDARD, language: Any = Language.PYTHON) -> None:
        super().__init__(semantics, language)
        self.sampling_period: int | float = 1
        self.sampling_period_unit = "s"
        self.sampling_tolerance = 0.1
        self.sampling_violation_counter = 0
        self._previous: float | None = None
        self._steps: _discrete.Steps | None = None
        #: The variables that are read, each with the name of its object.
        self._names: list[tuple[str, str]] = []
        #: The variables that are read and have no value yet.
        self._unseen: set[str] = set()

    def set_sampling_period(self, sampling_period: int | float = 1, unit: str = "s", tolerance: float = 0.1) -> None:
        """Sets the expected time between two samples. Call it before :meth:`parse`, which converts bounds."""
        if not 0.0 <= tolerance <= 1.0:
            raise RTAMTException("the tolerance must be in [0, 1]")
        self.sampling_period, self.sampling_period_unit = sampling_period, unit
        self.sampling_tolerance = tolerance

    def get_sampling_frequency(self) -> float:
        """Samples in a second."""
        return 1e9 / (self.sampling_period * UNITS[self.sampling_period_unit])

    def update(self, timestamp: float, dataset: Sequence[Any]) -> float:
        """Evaluates a sample of some variables, and returns the robustness."""
        if self._steps is None:
            stages = self._planned()
            self._check_online()
            names = set().union(*(stage.names() for stage in stages))
            self._names = [(name, name.partition(".")[0]) for name in sorted(names)]
            self._unseen = {head for _, head in self._names}
            self._steps = _discrete.Steps(stages)
        objects = self.var_object_dict
        self._check_seen(dataset)
        for name, value in dataset:
            objects[name] = value
        results = self._steps.push({name: self._read(name, objects[head]) for name, head in self._names})
        self._store(results)
        self._count_violation(timestamp)
        return results[-1]

    def evaluate(self, dataset: Mapping[str, Sequence[Any]]) -> list[list[float]]:
        """The robustness at every sample of columns, one of them ``time``."""
        if "time" not in dataset:
            raise RTAMTException("evaluate: the data have no column 'time'")
        times = list(dataset["time"])
        stages = self._planned()
        columns: dict[str, list[float]] = {}
        for name in set().union(*(stage.names() for stage in stages)):
            head = name.partition(".")[0]
            if head not in dataset:
                raise RTAMTException(f"evaluate: the data have no column '{head}'")
            if len(dataset[head]) != len(times):
                raise RTAMTException(f"evaluate: column '{head}' has {len(dataset[head])} rows, 'time' {len(times)}")
            columns[name] = [self._read(name, value) for value in dataset[head]]
        for name, column in dataset.items():
            if name != "time":
                self.var_object_dict[name] = column
        results = [_discrete.evaluate(stage, columns, len(times)) for stage in stages]
        for assertion, values in zip(self._assertions, results):
            self.var_object_dict[assertion.name or "out"] = values
        self._previous = None
        for time in times:
            self._count_violation(time)
        return [[time, value] for time, value in zip(times, results[-1])]

    def _check_seen(self, dataset: Sequence[Any]) -> None:
        """Refuses a sample before which a variable that is read has no value."""
        if not self._unseen:
            return
        unseen = self._unseen - {name for name, _ in dataset}
        # A program may set values itself.
        unseen = {name for name in unseen if self.var_object_dict[name] is self._initial.get(name)}
        if unseen:
            raise RTAMTException(f"update: {self._lack(unseen, (name for name, _ in dataset))}")
        self._unseen = set()

    def _restart(self) -> None:
        super()._restart()
        self._steps = None
        self._previous = None
        self.sampling_violation_counter = 0

    def _count_violation(self, time: float) -> None:
        """Counts a sample whose distance from the last one is not the period, within the tolerance."""
        period = self.sampling_period * UNITS[self.sampling_period_unit] / UNITS[self.unit]
        if self._previous is not None:
            distance, tolerance = time - self._previous, period * self.sampling_tolerance
            self.sampling_violation_counter += not period - tolerance <= distance <= period + tolerance
        self._previous = time

    def _bound(self, bound: Bound, unit: str) -> int:
        period = Fraction(str(self.sampling_period)) * UNITS[self.sampling_period_unit]
        steps = bound.value * UNITS[unit] / period
        if steps.denominator != 1:
            shown = f"{self.sampling_period} {self.sampling_period_unit}"
            raise bound.place.error(f"the operator bound must be a multiple of the sampling period, {shown}")
        return int(steps)


class StlDenseTimeSpecification(_Specification):
    """A specification over signals that hold the value of a sample until the next one."""

    _MODEL = "dense"

    def __init__(self, semantics: Any = Semantics.STANDARD, language: Any = Language.PYTHON) -> None:
        super().__init__(semantics, language)
        self._segments: _dense.Segments | None = None
        #: Times as the user wrote them, by nanoseconds.
        self._times: dict[int, float] = {}

    def update(self, *args: Sequence[Any]) -> list[list[float]]:
        """Adds samples ``["name", [[time, value], ...]]``, and returns the robustness from where it was known last."""
        if self._segments is None:
            result = self._result
            self._check_online()
            self._segments = _dense.Segments(result)
        if not self._segments.names:
            return self.evaluate()
        names, given = self._segments.names, [name for name, _ in args]
        lacking = _heads(names - self._segments.latest.keys()) - set(given)
        # A name that is not declared is not mistaken for a variable whose samples come later.
        if lacking and not set(given) <= set(self.var_type_dict):
            raise RTAMTException(f"update: {self._lack(lacking, given)}")
        shown = self._shown(self._segments.push(self._signals(args, names, self._segments.latest)))
        self.var_object_dict[self.out_var] = shown
        return shown

    def evaluate(self, *args: Sequence[Any]) -> list[list[float]]:
        """The robustness over whole signals ``["name", [[time, value], ...]]``."""
        stages = self._planned()
        names, given = set().union(*(stage.names() for stage in stages)), [name for name, _ in args]
        if lacking := _heads(names) - set(given):
            raise RTAMTException(f"evaluate: {self._lack(lacking, given)}")
        signals = self._signals(args, names, {})
        reach = sum(_reach(assertion.formula) for assertion in self._assertions)
        shown = [self._shown(_dense.evaluate(stage, signals, reach), bool(stage.names())) for stage in stages]
        self._store(shown)
        return shown[-1]

    def _restart(self) -> None:
        super()._restart()
        self._segments = None

    def _signals(
        self, arguments: Iterable[Sequence[Any]], names: Iterable[str], latest: Mapping[str, int]
    ) -> dict[str, _dense.Signal]:
        """The samples of the variables that are read, with times in nanoseconds: each later than the one before it.

        The first sample of a variable may have the `latest` time of those before.
        """
        given: dict[str, Any] = {name: samples for name, samples in arguments}
        found: dict[str, _dense.Signal] = {}
        for name in names:
            found[name] = []
            before: Fraction | None = None
            for time, value in given.get(name.partition(".")[0], ()):
                exact = Fraction(time if isinstance(time, int) else float(time))
                nanoseconds = round(exact * UNITS[self.unit])
                is_first = before is None and nanoseconds >= latest.get(name, nanoseconds)
                if not is_first and (before is None or exact <= before):
                    raise RTAMTException(f"the times of '{name}' must increase: {time} is not later than the one before it")
                before = exact
                self._times[nanoseconds] = time
                found[name].append((nanoseconds, self._read(name, value)))
        self.var_object_dict.update(given)
        return found

    def _shown(self, signal: _dense.Signal, is_bounded: bool = True) -> list[list[float]]:
        """A signal with times as the user writes them. That of a constant has no end."""
        length = UNITS[self.unit]
        shown = [[self._times.get(time, time / length), value] for time, value in signal]
        return shown if is_bounded else [[0, shown[0][1]], [math.inf, shown[0][1]]]


def _heads(names: Iterable[str]) -> set[str]:
    """The variables of names, which may be those of their fields."""
    return {name.partition(".")[0] for name in names}


def _check_past(node: Node) -> None:
    """Refuses formulas that look ahead, in an evaluation that goes along with time."""
    if node.operator in FUTURE:
        advice = "call pastify() before update()" if node.bounds or node.operator in ("next", "s_next") else "give it bounds"
        raise node.place.error(f"'{node.operator}' looks ahead, which update() cannot: {advice}, or use evaluate()")
    for operand in node.operands:
        _check_past(operand)


def _reach(node: Node) -> int:
    """The sum of all upper bounds."""
    return (node.bounds[1] if node.bounds else 0) + sum(_reach(operand) for operand in node.operands)
