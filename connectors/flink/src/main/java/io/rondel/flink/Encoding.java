package io.rondel.flink;

/** Encodings of payloads, in the order of the constants of the C interface. */
public enum Encoding {
    JSON,
    CDR,
    PROTOBUF,
    FLATBUFFERS,
    CBOR,
    MSGPACK,
    PLAIN,
    SPARKPLUG_B,
    SENML,
    XML
}
