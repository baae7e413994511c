"""The interface of RTAMT: robustness of Signal Temporal Logic (STL).

Programs run with this import in place of ``import rtamt``::

    import rondel.compat.rtamt as rtamt

    spec = rtamt.StlDiscreteTimeSpecification()
    spec.declare_var("a", "float")
    spec.spec = "eventually[0,1] (a >= 2)"
    spec.parse()
    spec.pastify()
    print(spec.update(0, [("a", 5.0)]), spec.update(1, [("a", 1.0)]))

Formulas are translated into specifications of Rondel, which ``spec.rondel`` returns.
"""

from __future__ import annotations

from ._formula import RTAMTException
from ._options import Language, Semantics, StlIOType, TimeInterpretation
from ._specification import StlDenseTimeSpecification, StlDiscreteTimeSpecification

__all__ = [
    "Language",
    "RTAMTException",
    "STLCTSpecification",
    "STLSpecification",
    "Semantics",
    "StlDenseTimeOfflineSpecification",
    "StlDenseTimeOnlineSpecification",
    "StlDenseTimeSpecification",
    "StlDiscreteTimeOfflineSpecification",
    "StlDiscreteTimeOnlineSpecification",
    "StlDiscreteTimeOnlineSpecificationCpp",
    "StlDiscreteTimeSpecification",
    "StlIOType",
    "TimeInterpretation",
]

# Specifications evaluate online and offline.
StlDiscreteTimeOfflineSpecification = StlDiscreteTimeSpecification
StlDiscreteTimeOnlineSpecification = StlDiscreteTimeSpecification
StlDiscreteTimeOnlineSpecificationCpp = StlDiscreteTimeSpecification
StlDenseTimeOfflineSpecification = StlDenseTimeSpecification
StlDenseTimeOnlineSpecification = StlDenseTimeSpecification
# Names of earlier releases.
STLSpecification = StlDiscreteTimeSpecification
STLCTSpecification = StlDenseTimeSpecification
