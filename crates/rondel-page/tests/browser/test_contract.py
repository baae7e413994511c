"""The answers of the fake server keep to the contract, so that the page is tested with what the program sends."""

import json
import urllib.parse
import urllib.request

import jsonschema
import pytest
import scenes
import yaml
from conftest import ROOT
from play import Play

pytestmark = pytest.mark.quick

CONTRACT = yaml.safe_load((ROOT / "docs/reference/openapi.yaml").read_text())

PATHS = [
    ("overview?width=100", "Overview"),
    ("properties/{property}", "Property"),
    ("properties/{property}/instances", "Instances"),
    ("properties/{property}/verdicts?width=50", "History"),
    ("properties/{property}/signals?width=50", "Signals"),
    ("violations", "Violations"),
    ("incidents", "Incidents"),
    ("topics", "Topics"),
    ("topics/{topic}", "TopicDetail"),
    ("losses", "Losses"),
    ("specification", "Specification"),
    ("state", "State"),
]


def get(fake, path):
    with urllib.request.urlopen(f"{fake.url}api/v1/{path}") as answer:
        return json.load(answer)


def post(fake, path, body):
    request = urllib.request.Request(f"{fake.url}api/v1/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def check(value, schema):
    jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{schema}", "components": CONTRACT["components"]}).validate(value)


@pytest.mark.parametrize("scene", [scenes.fleet, scenes.hostile, lambda now: scenes.large(now, 20, 5)], ids=["fleet", "hostile", "large"])
@pytest.mark.parametrize("path, schema", PATHS, ids=[schema for _, schema in PATHS])
def test_answers_keep_to_the_contract(serve, scene, path, schema):
    fake = serve(scene)
    prop, topic = next(iter(fake.scene.properties)), fake.scene.topics[0]["name"]
    check(get(fake, path.format(property=urllib.parse.quote(prop, safe=""), topic=urllib.parse.quote(topic, safe=""))), schema)


def test_playground_keeps_to_the_contract(serve):
    fake = serve(playground=Play(file="a.rondel"))
    check(get(fake, "playground"), "Playground")
    for text in ("topic speed { value: float }\nproperty p = speed.value <= 10", "property p = nothing", ""):
        check(post(fake, "playground", {"specification": text, "recording": "drive.jsonl"}), "Result")
    check(post(fake, "playground/file", {"specification": ""}), "Saved")


def test_events_keep_to_the_contract(serve):
    fake = serve(lambda now: scenes.large(now, 20, 5, changes_per_second=50))
    seen = {}
    with urllib.request.urlopen(f"{fake.url}api/v1/events") as stream:
        name = None
        while {"hello", "changes", "state"} - seen.keys():
            line = stream.readline().decode()
            if line.startswith("event:"):
                name = line.split()[1]
            if line.startswith("data:"):
                seen[name] = json.loads(line[5:])
    for name, schema in [("hello", "Hello"), ("changes", "Changes"), ("state", "State")]:
        check(seen[name], schema)
