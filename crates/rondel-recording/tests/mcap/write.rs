//! Writes MCAP files record by record, also invalid ones.

/// A file that is being written.
#[derive(Clone, Default)]
pub(crate) struct Writer {
    pub(crate) bytes: Vec<u8>,
    /// The bodies of chunk indexes.
    indexes: Vec<Vec<u8>>,
    messages: u64,
}

/// A record.
pub(crate) fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], (body.len() as u64).to_le_bytes().as_slice(), body].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

pub(crate) fn schema(id: u16, name: &str, encoding: &str, data: &[u8]) -> Vec<u8> {
    let size = (data.len() as u32).to_le_bytes();
    record(3, &[&id.to_le_bytes(), &*text(name), &text(encoding), &size, data].concat())
}

pub(crate) fn channel(id: u16, schema: u16, topic: &str, encoding: &str) -> Vec<u8> {
    let ids = [id.to_le_bytes(), schema.to_le_bytes()].concat();
    record(4, &[&*ids, &text(topic), &text(encoding), &[0; 4]].concat())
}

pub(crate) fn message(channel: u16, sequence: u32, time: u64, payload: &[u8]) -> Vec<u8> {
    let head =
        [&channel.to_le_bytes()[..], &sequence.to_le_bytes(), &time.to_le_bytes(), &(time + 1).to_le_bytes()];
    record(5, &[&*head.concat(), payload].concat())
}

/// A valid chunk, whose parts may then be replaced.
pub(crate) struct Chunk {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) size: u64,
    pub(crate) crc: u32,
    pub(crate) compression: &'static str,
    pub(crate) compressed_size: u64,
    pub(crate) records: Vec<u8>,
}

impl Chunk {
    pub(crate) fn new(compression: &'static str, records: &[u8], start: u64, end: u64) -> Chunk {
        let compressed = match compression {
            "zstd" => zstd::encode_all(records, 1).unwrap(),
            "lz4" => {
                let mut encoder = lz4::EncoderBuilder::new().build(Vec::new()).unwrap();
                std::io::Write::write_all(&mut encoder, records).unwrap();
                encoder.finish().0
            }
            _ => records.to_vec(),
        };
        Chunk {
            start,
            end,
            size: records.len() as u64,
            crc: crc32fast::hash(records),
            compression,
            compressed_size: compressed.len() as u64,
            records: compressed,
        }
    }

    pub(crate) fn record(&self) -> Vec<u8> {
        let Chunk { start, end, size, crc, compression, compressed_size, records } = self;
        let numbers = [start.to_le_bytes(), end.to_le_bytes(), size.to_le_bytes()].concat();
        let size = compressed_size.to_le_bytes();
        record(6, &[&*numbers, &crc.to_le_bytes(), &text(compression), &size, records].concat())
    }
}

impl Writer {
    pub(crate) fn new() -> Writer {
        let header = record(1, &[text("ros2"), text("test")].concat());
        Writer { bytes: [b"\x89MCAP0\r\n", &*header].concat(), ..Writer::default() }
    }

    pub(crate) fn add(&mut self, record: &[u8]) -> &mut Writer {
        self.bytes.extend_from_slice(record);
        self
    }

    /// Adds a chunk with the indexes of these channels, each with the number of its messages.
    pub(crate) fn chunk(&mut self, chunk: &Chunk, channels: &[(u16, usize)]) -> &mut Writer {
        let offset = self.bytes.len() as u64;
        self.add(&chunk.record());
        let length = self.bytes.len() as u64 - offset;
        let mut offsets = Vec::new();
        for (channel, count) in channels {
            offsets.extend([&channel.to_le_bytes()[..], &(self.bytes.len() as u64).to_le_bytes()].concat());
            let size = (*count as u32 * 16).to_le_bytes();
            let entries = vec![0; count * 16];
            self.add(&record(7, &[&channel.to_le_bytes()[..], &size, &entries].concat()));
            self.messages += *count as u64;
        }
        let index_length = self.bytes.len() as u64 - offset - length;
        let numbers = [chunk.start, chunk.end, offset, length].map(u64::to_le_bytes).concat();
        let size = (offsets.len() as u32).to_le_bytes();
        let rest = [chunk.compressed_size.to_le_bytes(), chunk.size.to_le_bytes()].concat();
        let body = [&*numbers, &size, &offsets, &index_length.to_le_bytes(), &text(chunk.compression), &rest]
            .concat();
        self.indexes.push(body);
        self
    }

    /// Ends the file, with an index that repeats these definitions, or without an index.
    pub(crate) fn finish(mut self, definitions: Option<&[u8]>) -> Vec<u8> {
        self.add(&record(15, &[0; 4]));
        let start = self.bytes.len() as u64;
        if let Some(definitions) = definitions {
            self.add(definitions);
            for body in std::mem::take(&mut self.indexes) {
                self.add(&record(8, &body));
            }
        }
        let start = if definitions.is_some() { start } else { 0 };
        let head = [&[2], 20_u64.to_le_bytes().as_slice(), &start.to_le_bytes(), &[0; 8]].concat();
        self.add(&head);
        let crc = if start == 0 { 0 } else { crc32fast::hash(&self.bytes[start as usize..]) };
        self.add(&crc.to_le_bytes()).add(b"\x89MCAP0\r\n");
        self.bytes
    }
}
