"""A playground for the fake server: it finds `nothing` wrong, and judges each property by its text."""

import math
import re

EXAMPLES = [
    {"name": "Limits", "about": "If speed exceeds 10, the brake must have been pressed.", "specification": "topic speed { value: float }\nproperty braking = speed.value <= 10\n", "messages": '{"topic": "speed", "time": 0, "data": {"value": 8}}\n'},
    {"name": "Answers", "about": "Every request is answered.", "specification": "topic ask\nproperty answered = on(ask)\n", "messages": '{"topic": "ask", "time": 0}\n'},
]

TIMES = [i / 10 for i in range(100)]
SPEEDS = [8 + 4 * math.sin(i / 18) for i in range(100)]


class Play:
    """`status` other than 200 is the answer to every check, with the reason in `reason`; `busy` saves are answered by 429."""

    def __init__(self, file=None, recordings=("drive.jsonl",)):
        self.file, self.recordings = file, list(recordings)
        self.status, self.reason, self.busy = 200, "", 0
        self.attempts, self.saved = [], []

    def description(self):
        return {"recordings": self.recordings, "file": self.file, "examples": EXAMPLES}

    def answer(self, parts, body):
        if parts[1:] == ["file"]:
            if self.file is None:
                return 403, {"error": "saving is not allowed"}
            if self.busy:
                self.busy -= 1
                return 429, {"error": "the playground checks for another viewer"}
            self.saved.append(body["specification"])
            return 200, {"file": self.file}
        self.attempts.append(body)
        if self.status != 200:
            return self.status, {"error": self.reason}
        return 200, self.result(body["specification"])

    def result(self, text):
        wrong = [self.diagnostic(text, match) for match in re.finditer("nothing", text)]
        names = [] if wrong else re.findall(r"property (\S+)", text)
        signal = {"name": "speed.value", "kind": "number", "thresholds": [10.0], "times": TIMES, "least": SPEEDS, "texts": []}
        signals = [{**signal, "greatest": signal["least"]}] if names else []
        return {"diagnostics": wrong, "error": None, "remarks": [], "events": 100 if names else 0, "begin": 0.0 if names else None, "end": 9.9 if names else None, "properties": [self.property(name, text) for name in names], "signals": signals}

    @staticmethod
    def diagnostic(text, match):
        before = text[: match.start()]
        return {"severity": "error", "code": "E0202", "message": "unknown topic 'nothing'", "start": match.start(), "end": match.end(), "line": before.count("\n") + 1, "column": len(before) - before.rfind("\n"), "help": "declare it: <b>topic nothing</b>"}

    @staticmethod
    def property(name, text):
        if "<= 10" not in text:
            return {"name": name, "severity": "", "outcome": "satisfied", "remark": "", "count": 0, "timeline": {"times": [0.0], "verdicts": [0]}, "violations": []}
        verdicts = [int(speed > 10) for speed in SPEEDS]
        changes = [i for i, verdict in enumerate(verdicts) if i == 0 or verdict != verdicts[i - 1]]
        begins = [i for i in changes if verdicts[i]]
        evidence = lambda i: [{"time": TIMES[i], "after": False, "topic": "speed", "values": {"speed.value": f"{SPEEDS[i]:.2f}", "brake.pressed": "false", name: None}}]
        violations = [{"time": TIMES[i], "certain": TIMES[i] + 2, "parameters": "", "values": {}, "evidence": evidence(i)} for i in begins]
        return {"name": name, "severity": "", "outcome": "violated", "remark": "", "count": len(violations), "timeline": {"times": [TIMES[i] for i in changes], "verdicts": [verdicts[i] for i in changes]}, "violations": violations}
