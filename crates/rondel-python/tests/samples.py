"""Specifications and recordings of several tests."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
VEHICLE = ROOT / "examples/vehicle.rondel"
DRIVE = ROOT / "examples/vehicle.jsonl"
LEVEL = "topic tank { level: float }\nproperty low = tank.level < 40\n"
