"""Specifications for the tests of the interface of RTAMT."""

import rondel.compat.rtamt as rtamt


def specification(text, dense=False, **options):
    spec = (rtamt.StlDenseTimeSpecification if dense else rtamt.StlDiscreteTimeSpecification)(**options)
    for name in ["a", "b"]:
        spec.declare_var(name, "float")
    spec.declare_const("k", "float", "2.5")
    spec.declare_const("two", "int", 2)
    spec.spec = text
    return spec


def parsed(text, dense=False, **options):
    spec = specification(text, dense, **options)
    spec.parse()
    return spec
