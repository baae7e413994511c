#!/usr/bin/env python3
"""Write sfdps.xml.gz, a small archive of messages about flights in the form of SWIM's flight data (FIXM)."""

import gzip
from pathlib import Path

BEGIN = "2026-11-22T10:00:"

# Time of the recording in seconds, call sign, time of the message in seconds, status, altitude in feet.
MESSAGES = [
    (0, "AFR1", 0.0, "ACTIVE", 35000),
    (0.4, "DLH7", 0.3, "ACTIVE", 9100),
    (1, "AFR1", 1.0, "ACTIVE", 35200),
    (1.4, "DLH7", 1.3, "ACTIVE", 8800),
    (2, "AFR1", 0.9, "ACTIVE", 35200),
    (2.2, "DLH7", 2.1, "COMPLETED", 0),
    (3, "AFR1", 3.0, "ACTIVE", 61000),
    (3.4, "DLH7", 1.0, "PROPOSED", None),
    (4, "AFR1", 3.0, "ACTIVE", 35100),
]


def message(time, call_sign, own, status, altitude):
    route = f"""
      <enRoute><position positionTime="{BEGIN}{own:06.3f}Z"><altitude uom="FEET">{altitude}.0</altitude></position></enRoute>"""
    return f"""  <message time="{BEGIN}{time:06.3f}Z" xsi:type="ns5:FlightMessageType">
    <flight centre="ZOA" source="TH" timestamp="{BEGIN}{own:06.3f}Z">
      <flightIdentification aircraftIdentification="{call_sign}" computerId="{sum(call_sign.encode())}"/>
      <flightStatus fdpsFlightStatus="{status}"/>{"" if altitude is None else route}
    </flight>
  </message>
"""


def main():
    messages = "".join(message(*of) for of in MESSAGES)
    text = f"""<?xml version="1.0" encoding="UTF-8"?>
<ns5:MessageCollection xmlns:ns5="http://www.faa.aero/nas/3.0" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
{messages}</ns5:MessageCollection>
"""
    # Without a time of writing, so that the same messages are the same file.
    path = Path(__file__).with_suffix(".xml.gz")
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
