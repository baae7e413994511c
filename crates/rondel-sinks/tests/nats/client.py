"""An independent client of NATS JetStream: URL create|update JSON, URL read STREAM."""

import asyncio
import json
import sys

import nats
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig


async def read(js, stream):
    subscription = await js.pull_subscribe("", stream=stream, config=ConsumerConfig(ack_policy=AckPolicy.NONE))
    left = (await js.stream_info(stream)).state.messages
    while left:
        messages = await subscription.fetch(min(left, 5000), timeout=10)
        left -= len(messages)
        for message in messages:
            line = {
                "subject": message.subject,
                "headers": message.headers or {},
                "data": message.data.decode(),
            }
            print(json.dumps(line))


async def main(url, action, argument):
    options = {"max_reconnect_attempts": 0, "allow_reconnect": False, "connect_timeout": 10}
    client = await nats.connect(url, pending_size=1 << 24, **options)
    js = client.jetstream(timeout=20)
    if action in ("create", "update"):
        config = StreamConfig.from_response(json.loads(argument))
        await (js.add_stream(config) if action == "create" else js.update_stream(config))
    else:
        await read(js, argument)
    await client.close()


asyncio.run(main(*sys.argv[1:]))
