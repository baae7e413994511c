"""Types of the fixtures that are factories."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from .._types import Emit, Verdict

if TYPE_CHECKING:
    from .deployment import JudgedDeployment
    from .monitor import JudgedMonitor


class MonitorFactory(Protocol):
    """The fixture `rondel_monitor_factory`."""

    def __call__(
        self,
        specification: str | os.PathLike[str],
        *,
        emit: Emit = "change",
        expect: Mapping[str, Verdict] | None = None,
        allow_inconclusive: bool = False,
    ) -> JudgedMonitor:
        """Create a monitor of the text of a specification, or of its file."""


class DeploymentFactory(Protocol):
    """The fixture `rondel_deployment`."""

    def __call__(
        self,
        deployment: str | os.PathLike[str],
        *arguments: str,
        expect: Mapping[str, Verdict] | None = None,
        allow_inconclusive: bool = False,
        ready_within: float = 20.0,
        stop_within: float = 10.0,
        settle: float = 0.5,
        env: Mapping[str, str] | None = None,
    ) -> JudgedDeployment:
        """Start a run, and return when it is ready."""
