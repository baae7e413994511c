"""A client of Foxglove's WebSocket protocol for the tests, on the library `websockets`.

  client.py URL [HEADER=VALUE...]

It offers the subprotocols that are the value of `protocol=`, separated by commas (default: foxglove.sdk.v1); other
arguments are headers. Commands are lines of JSON on standard input: {"subscribe": [TOPIC...]}, {"unsubscribe":
[TOPIC...]}, {"text": TEXT}, {"large": BYTES}, {"bytes": TEXT}, {"close": true}. Everything that arrives is a line of JSON
on standard output. Every message is held against the JSON Schema of its channel.
"""

import asyncio
import json
import struct
import sys
import threading

import jsonschema
import websockets


def show(**line):
    print(json.dumps(line, separators=(",", ":")), flush=True)


class Client:
    def __init__(self, socket):
        self.socket = socket
        self.channels = {}
        self.wanted = set()
        # Topic to the number of the subscription.
        self.subscribed = {}
        self.topics = {}
        self.last = 0

    async def subscribe(self):
        """Subscribes to the wanted topics whose channels are known."""
        new = []
        for topic in sorted(self.wanted - set(self.subscribed)):
            channel = next((c for c in self.channels.values() if c["topic"] == topic), None)
            if channel:
                self.last += 1
                self.subscribed[topic] = self.last
                self.topics[self.last] = channel
                new.append({"id": self.last, "channelId": channel["id"]})
        if new:
            await self.socket.send(json.dumps({"op": "subscribe", "subscriptions": new}))
            show(subscribed=[self.topics[one["id"]]["topic"] for one in new])

    async def obey(self, command):
        if "subscribe" in command:
            self.wanted.update(command["subscribe"])
            await self.subscribe()
        elif "unsubscribe" in command:
            self.wanted.difference_update(command["unsubscribe"])
            ids = [self.subscribed.pop(topic) for topic in command["unsubscribe"]]
            await self.socket.send(json.dumps({"op": "unsubscribe", "subscriptionIds": ids}))
            show(unsubscribed=command["unsubscribe"])
        elif "text" in command:
            await self.socket.send(command["text"])
        elif "large" in command:
            await self.socket.send("x" * command["large"])
        elif "bytes" in command:
            await self.socket.send(command["bytes"].encode())
        else:
            await self.socket.close()

    async def take(self, received):
        if isinstance(received, bytes):
            kind, subscription, time = struct.unpack_from("<BIQ", received)
            assert kind == 1, received
            channel = self.topics[subscription]
            data = json.loads(received[13:])
            jsonschema.validate(data, json.loads(channel["schema"]))
            show(topic=channel["topic"], time=time, data=data)
            return
        message = json.loads(received)
        if message["op"] == "advertise":
            for channel in message["channels"]:
                assert (channel["encoding"], channel["schemaEncoding"]) == ("json", "jsonschema"), channel
                jsonschema.Draft202012Validator.check_schema(json.loads(channel["schema"]))
                assert channel["id"] not in self.channels, channel
                self.channels[channel["id"]] = channel
                show(advertised=channel["topic"], schema=channel["schemaName"])
            await self.subscribe()
        elif message["op"] == "unadvertise":
            for number in message["channelIds"]:
                topic = self.channels.pop(number)["topic"]
                self.subscribed.pop(topic, None)
                show(unadvertised=topic)
        else:
            show(**message)


async def main(url, arguments):
    headers = dict(argument.split("=", 1) for argument in arguments)
    protocols = [name for name in headers.pop("protocol", "foxglove.sdk.v1").split(",") if name]
    try:
        socket = await websockets.connect(
            url, subprotocols=protocols or None, additional_headers=headers, max_size=None, proxy=None
        )
    except websockets.InvalidStatus as error:
        show(refused=error.response.status_code, body=error.response.body.decode())
        return
    show(open=socket.subprotocol)
    client = Client(socket)
    loop = asyncio.get_running_loop()
    commands = asyncio.Queue()

    def read():
        for line in sys.stdin:
            loop.call_soon_threadsafe(commands.put_nowait, json.loads(line))

    threading.Thread(target=read, daemon=True).start()

    async def obey():
        while True:
            await client.obey(await commands.get())

    obeying = asyncio.create_task(obey())
    try:
        async for received in socket:
            await client.take(received)
    except websockets.ConnectionClosedError:
        pass
    obeying.cancel()
    show(closed=socket.close_code)


asyncio.run(main(sys.argv[1], sys.argv[2:]))
