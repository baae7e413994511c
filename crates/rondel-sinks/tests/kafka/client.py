"""An independent client of Kafka: BROKER create|read TOPIC [SETTING=VALUE ...], with a user and a password in
the environment where the broker demands them."""

import json
import os
import sys

from kafka import KafkaConsumer, TopicPartition
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

if action == "create":
    admin = KafkaAdminClient(bootstrap_servers=broker, **login)
    partitions = int(settings.pop("partitions", 3))
    options = {"num_partitions": partitions, "replication_factor": 1, "configs": settings}
    admin.create_topics({topic: options}, wait_for_metadata=True)
    admin.close()
else:
    consumer = KafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False, consumer_timeout_ms=20000, **login)
    partitions = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic) or [])]
    consumer.assign(partitions)
    left = sum(consumer.end_offsets(partitions).values())
    consumer.seek_to_beginning(*partitions)
    while left:
        record = next(consumer)
        left -= 1
        line = {
            "partition": record.partition,
            "key": record.key.decode(),
            "headers": {name: value.decode() for name, value in record.headers},
            "data": record.value.decode(),
        }
        print(json.dumps(line))
    consumer.close()
