"""An independent client of Kafka: BROKER ACTION TOPIC [SETTING=VALUE ...], with a user and a password in the environment
where the broker demands them. Actions:

    create   a topic; settings: partitions, and those of the topic
    delete   a topic
    read     prints all records as lines of JSON
    publish  lines of JSON from standard input: value (null: a tombstone; or value_hex), key (or key_hex), headers,
             partition, timestamp in ms
    grow     adds partitions up to a number; settings: partitions
    expire   removes the records before an offset of each partition; settings: partition=offset
"""

import json
import os
import sys

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

broker, action, topic, *settings = sys.argv[1:]
settings = dict(setting.split("=", 1) for setting in settings)
login = {}
if "KAFKA_USER" in os.environ:
    login = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": os.environ["KAFKA_USER"],
        "sasl_plain_password": os.environ["KAFKA_PASSWORD"],
    }


def text(value):
    return None if value is None else value.decode()


def read():
    consumer = KafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False, consumer_timeout_ms=20000, **login)
    partitions = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic) or [])]
    consumer.assign(partitions)
    begins = consumer.beginning_offsets(partitions)
    left = sum(end - begins[partition] for partition, end in consumer.end_offsets(partitions).items())
    consumer.seek_to_beginning(*partitions)
    while left:
        record = next(consumer)
        left -= 1
        line = {
            "partition": record.partition,
            "key": text(record.key),
            "headers": {name: value.decode() for name, value in record.headers},
            "data": text(record.value),
        }
        print(json.dumps(line))
    consumer.close()


def publish():
    producer = KafkaProducer(bootstrap_servers=broker, acks="all", linger_ms=1, max_request_size=4 << 20, **login)
    sent = []
    for line in sys.stdin:
        record = json.loads(line)
        value, key = record.get("value"), record.get("key")
        sent.append(
            producer.send(
                topic,
                value=bytes.fromhex(record["value_hex"]) if "value_hex" in record else None if value is None else value.encode(),
                key=bytes.fromhex(record["key_hex"]) if "key_hex" in record else None if key is None else key.encode(),
                headers=[(name, value.encode()) for name, value in record.get("headers", {}).items()],
                partition=record.get("partition"),
                timestamp_ms=record.get("timestamp"),
            )
        )
    producer.flush()
    for future in sent:
        future.get(timeout=20)
    producer.close()


def administer():
    admin = KafkaAdminClient(bootstrap_servers=broker, **login)
    if action == "create":
        partitions = int(settings.pop("partitions", 3))
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": settings}
        admin.create_topics({topic: options}, wait_for_metadata=True)
    elif action == "grow":
        admin.create_partitions({topic: int(settings["partitions"])})
    elif action == "delete":
        admin.delete_topics([topic])
    else:
        offsets = {TopicPartition(topic, int(number)): int(offset) for number, offset in settings.items()}
        admin.delete_records(offsets)
    admin.close()


{"read": read, "publish": publish}.get(action, administer)()
