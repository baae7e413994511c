//! Writing MCAP files: messages in compressed chunks, each followed by an index of it, and a summary at the end.
//!
//! An unfinished file has all chunks written so far: types and channels are defined in the chunk of their first
//! message. If a chunk cannot be written, its messages are lost and counted, and the file stays valid.

use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use zstd::bulk::Compressor as ZstdCompressor;

use super::records::{HEAD, MAGIC, MESSAGE_HEAD, op};
use crate::recording::RecordedSchema;

/// Level of zstd, low since recording must keep up with networks.
const ZSTD_LEVEL: i32 = 1;

/// Compression of chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// With LZ4: fast.
    Lz4,
    /// With zstd: small.
    #[default]
    Zstd,
}

impl Compression {
    /// Returns the name used in files.
    fn name(self) -> &'static str {
        match self {
            Compression::None => "",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// Options of a file to write.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Compression of chunks.
    pub compression: Compression,
    /// Size in bytes at which a chunk ends, after the message that reaches it.
    pub chunk_size: usize,
    /// The profile: `ros2` if the messages are those of ROS 2, otherwise empty.
    pub profile: String,
    /// Name of the program that writes.
    pub library: String,
}

impl Default for WriterOptions {
    fn default() -> WriterOptions {
        WriterOptions {
            compression: Compression::default(),
            chunk_size: 1 << 20,
            profile: String::new(),
            library: "rondel".to_owned(),
        }
    }
}

/// Numbers and times of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageHead {
    /// The channel.
    pub channel: u16,
    /// Sequence number from the publisher or the recorder.
    pub sequence: u32,
    /// Time of recording, in nanoseconds since 1970.
    pub log_time: u64,
    /// Time of publishing, in nanoseconds since 1970.
    pub publish_time: u64,
}

/// An MCAP file that is being written.
pub struct McapWriter {
    path: PathBuf,
    file: File,
    compressor: Compressor,
    chunk_size: usize,
    /// Length of the file up to the last complete record.
    position: u64,
    /// Checksum of all bytes up to there.
    crc: crc32fast::Hasher,
    schemas: Vec<Defined>,
    channels: Vec<Channel>,
    chunk: Chunk,
    summary: Summary,
    /// Bytes of the next write.
    out: Vec<u8>,
    lost: u64,
}

/// Record of a type or channel.
#[derive(Clone, Debug)]
struct Defined {
    record: Vec<u8>,
    /// Whether a written chunk or the open one has it.
    is_defined: bool,
}

#[derive(Clone, Debug)]
struct Channel {
    defined: Defined,
    schema: u16,
    /// Number of messages in written chunks.
    messages: u64,
    /// Times and offsets of the messages in the open chunk.
    index: Vec<(u64, u64)>,
}

/// The open chunk.
#[derive(Default)]
struct Chunk {
    records: Vec<u8>,
    start: u64,
    end: u64,
    messages: u64,
    /// The channels with messages, and the channels and types that the chunk defines.
    channels: Vec<u16>,
    new_channels: Vec<u16>,
    new_schemas: Vec<u16>,
}

/// Contents of the summary.
#[derive(Default)]
struct Summary {
    chunk_indexes: Vec<u8>,
    chunks: u32,
    metadata_indexes: Vec<u8>,
    metadata: u32,
    messages: u64,
    start: u64,
    end: u64,
}

impl McapWriter {
    /// Creates a file and writes its header.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub fn create(path: &Path, options: &WriterOptions) -> io::Result<McapWriter> {
        let file = File::options().write(true).create_new(true).open(path)?;
        let mut writer = McapWriter {
            path: path.to_owned(),
            file,
            compressor: Compressor::new(options.compression)?,
            chunk_size: options.chunk_size,
            position: 0,
            crc: crc32fast::Hasher::new(),
            schemas: Vec::new(),
            channels: Vec::new(),
            chunk: Chunk::default(),
            summary: Summary::default(),
            out: Vec::new(),
            lost: 0,
        };
        writer.out.extend_from_slice(MAGIC);
        let header = begin(op::HEADER, &mut writer.out);
        text(&options.profile, &mut writer.out);
        text(&options.library, &mut writer.out);
        end(header, &mut writer.out);
        writer.write()?;
        Ok(writer)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a type; returns its id, or `None` if there are too many.
    pub fn schema(&mut self, schema: &RecordedSchema) -> Option<u16> {
        let id = u16::try_from(self.schemas.len() + 1).ok()?;
        let mut record = Vec::new();
        let head = begin(op::SCHEMA, &mut record);
        record.extend_from_slice(&id.to_le_bytes());
        text(&schema.name, &mut record);
        text(&schema.encoding, &mut record);
        bytes(&schema.data, &mut record);
        end(head, &mut record);
        self.schemas.push(Defined { record, is_defined: false });
        Some(id)
    }

    /// Adds a channel: a topic, the encoding of its messages, their type (0 for none) and further metadata. Returns its
    /// id, or `None` if there are too many.
    pub fn channel(
        &mut self,
        topic: &str,
        encoding: &str,
        schema: u16,
        metadata: &[(String, String)],
    ) -> Option<u16> {
        let id = u16::try_from(self.channels.len() + 1).ok()?;
        let mut record = Vec::new();
        let head = begin(op::CHANNEL, &mut record);
        record.extend_from_slice(&id.to_le_bytes());
        record.extend_from_slice(&schema.to_le_bytes());
        text(topic, &mut record);
        text(encoding, &mut record);
        pairs(metadata, &mut record);
        end(head, &mut record);
        let defined = Defined { record, is_defined: false };
        self.channels.push(Channel { defined, schema, messages: 0, index: Vec::new() });
        Some(id)
    }

    /// Adds a message. Writes the chunk once it is full.
    ///
    /// # Errors
    /// The chunk could not be written: its messages are lost. Writing may continue.
    pub fn message(&mut self, head: &MessageHead, payload: &[u8]) -> io::Result<()> {
        let MessageHead { channel: id, sequence, log_time, publish_time } = *head;
        let Some(channel) = id.checked_sub(1).and_then(|at| self.channels.get_mut(at as usize)) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the channel is not defined"));
        };
        let chunk = &mut self.chunk;
        let schema = channel.schema.checked_sub(1).and_then(|at| self.schemas.get_mut(at as usize));
        if let Some(schema) = schema.filter(|schema| !schema.is_defined) {
            chunk.records.extend_from_slice(&schema.record);
            chunk.new_schemas.push(channel.schema);
            schema.is_defined = true;
        }
        if !channel.defined.is_defined {
            chunk.records.extend_from_slice(&channel.defined.record);
            chunk.new_channels.push(id);
            channel.defined.is_defined = true;
        }
        if channel.index.is_empty() {
            chunk.channels.push(id);
        }
        channel.index.push((log_time, chunk.records.len() as u64));
        if chunk.messages == 0 {
            (chunk.start, chunk.end) = (log_time, log_time);
        }
        (chunk.start, chunk.end) = (chunk.start.min(log_time), chunk.end.max(log_time));
        chunk.messages += 1;
        let records = &mut chunk.records;
        records.push(op::MESSAGE);
        records.extend_from_slice(&((MESSAGE_HEAD + payload.len()) as u64).to_le_bytes());
        records.extend_from_slice(&id.to_le_bytes());
        records.extend_from_slice(&sequence.to_le_bytes());
        records.extend_from_slice(&log_time.to_le_bytes());
        records.extend_from_slice(&publish_time.to_le_bytes());
        records.extend_from_slice(payload);
        if records.len() >= self.chunk_size { self.flush() } else { Ok(()) }
    }

    /// Writes the open chunk.
    ///
    /// # Errors
    /// The chunk could not be written: its messages are lost. Writing may continue.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.chunk.messages == 0 {
            return Ok(());
        }
        let index = self.write_chunk();
        let chunk = &mut self.chunk;
        match &index {
            Ok(index) => {
                let summary = &mut self.summary;
                let is_first = summary.messages == 0;
                summary.start = if is_first { chunk.start } else { summary.start.min(chunk.start) };
                summary.end = summary.end.max(chunk.end);
                summary.messages += chunk.messages;
                summary.chunks += 1;
                summary.chunk_indexes.extend_from_slice(index);
            }
            Err(_) => {
                self.lost += chunk.messages;
                // A later chunk defines them.
                for id in chunk.new_schemas.drain(..) {
                    self.schemas[id as usize - 1].is_defined = false;
                }
                for id in chunk.new_channels.drain(..) {
                    self.channels[id as usize - 1].defined.is_defined = false;
                }
            }
        }
        for id in chunk.channels.drain(..) {
            let channel = &mut self.channels[id as usize - 1];
            channel.messages += if index.is_ok() { channel.index.len() as u64 } else { 0 };
            channel.index.clear();
        }
        chunk.new_channels.clear();
        chunk.new_schemas.clear();
        chunk.records.clear();
        chunk.messages = 0;
        index.map(drop)
    }

    /// Writes the chunk with the indexes of its channels; returns its entry in the index of the file.
    fn write_chunk(&mut self) -> io::Result<Vec<u8>> {
        let (offset, chunk) = (self.position, &self.chunk);
        let compression = self.compressor.compression.name();
        let out = &mut self.out;
        out.clear();
        let head = begin(op::CHUNK, out);
        let size = chunk.records.len() as u64;
        for number in [chunk.start, chunk.end, size] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&crc32fast::hash(&chunk.records).to_le_bytes());
        text(compression, out);
        let compressed = self.compressor.compress(&chunk.records)?;
        out.extend_from_slice(&(compressed.len() as u64).to_le_bytes());
        out.extend_from_slice(compressed);
        let compressed = compressed.len() as u64;
        end(head, out);
        let length = out.len() as u64;
        let mut places = Vec::new();
        for id in &chunk.channels {
            places.extend_from_slice(&id.to_le_bytes());
            places.extend_from_slice(&(offset + out.len() as u64).to_le_bytes());
            let head = begin(op::MESSAGE_INDEX, out);
            out.extend_from_slice(&id.to_le_bytes());
            let index = &self.channels[*id as usize - 1].index;
            out.extend_from_slice(&((index.len() * 16) as u32).to_le_bytes());
            for (time, place) in index {
                out.extend_from_slice(&time.to_le_bytes());
                out.extend_from_slice(&place.to_le_bytes());
            }
            end(head, out);
        }
        let indexes = out.len() as u64 - length;
        let mut record = Vec::new();
        let head = begin(op::CHUNK_INDEX, &mut record);
        for number in [chunk.start, chunk.end, offset, length] {
            record.extend_from_slice(&number.to_le_bytes());
        }
        bytes(&places, &mut record);
        record.extend_from_slice(&indexes.to_le_bytes());
        text(compression, &mut record);
        for number in [compressed, size] {
            record.extend_from_slice(&number.to_le_bytes());
        }
        end(head, &mut record);
        self.write()?;
        Ok(record)
    }

    /// Adds a named map of texts after the messages so far.
    ///
    /// # Errors
    /// The map could not be written.
    pub fn metadata(&mut self, name: &str, map: &[(String, String)]) -> io::Result<()> {
        self.flush()?;
        let offset = self.position;
        self.out.clear();
        let head = begin(op::METADATA, &mut self.out);
        text(name, &mut self.out);
        pairs(map, &mut self.out);
        end(head, &mut self.out);
        let length = self.out.len() as u64;
        self.write()?;
        let indexes = &mut self.summary.metadata_indexes;
        let head = begin(op::METADATA_INDEX, indexes);
        indexes.extend_from_slice(&offset.to_le_bytes());
        indexes.extend_from_slice(&length.to_le_bytes());
        text(name, indexes);
        end(head, indexes);
        self.summary.metadata += 1;
        Ok(())
    }

    /// Returns the size of the file in bytes, counting the open chunk uncompressed.
    pub fn size(&self) -> u64 {
        self.position + self.chunk.records.len() as u64
    }

    /// Returns the number of messages added and not lost.
    pub fn messages(&self) -> u64 {
        self.summary.messages + self.chunk.messages
    }

    /// Returns the number of messages lost because their chunks could not be written.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether the file still has its name: neither it nor its folder was removed or moved.
    pub fn is_there(&self) -> bool {
        let own = self.file.metadata().ok().map(|own| (own.dev(), own.ino()));
        let named = fs::metadata(&self.path).ok().map(|named| (named.dev(), named.ino()));
        own.is_some() && own == named
    }

    /// Writes the open chunk and the summary; afterwards the file is on disk.
    ///
    /// # Errors
    /// Writing failed. The file has the records written before.
    pub fn finish(&mut self) -> io::Result<()> {
        let flushed = self.flush();
        self.out.clear();
        let head = begin(op::DATA_END, &mut self.out);
        self.out.extend_from_slice(&self.crc.clone().finalize().to_le_bytes());
        end(head, &mut self.out);
        let start = self.position + self.out.len() as u64;
        let mut summary = Vec::new();
        let mut offsets = Vec::new();
        let mut group = |kind: u8, summary: &mut Vec<u8>, from: usize| {
            let length = (summary.len() - from) as u64;
            if length > 0 {
                let head = begin(op::SUMMARY_OFFSET, &mut offsets);
                offsets.push(kind);
                offsets.extend_from_slice(&(start + from as u64).to_le_bytes());
                offsets.extend_from_slice(&length.to_le_bytes());
                end(head, &mut offsets);
            }
            summary.len()
        };
        self.schemas.iter().for_each(|schema| summary.extend_from_slice(&schema.record));
        let from = group(op::SCHEMA, &mut summary, 0);
        self.channels.iter().for_each(|channel| summary.extend_from_slice(&channel.defined.record));
        let from = group(op::CHANNEL, &mut summary, from);
        self.statistics(&mut summary);
        let from = group(op::STATISTICS, &mut summary, from);
        summary.extend_from_slice(&self.summary.chunk_indexes);
        let from = group(op::CHUNK_INDEX, &mut summary, from);
        summary.extend_from_slice(&self.summary.metadata_indexes);
        let offsets_start = start + group(op::METADATA_INDEX, &mut summary, from) as u64;
        summary.extend_from_slice(&offsets);
        let head = begin(op::FOOTER, &mut summary);
        summary.extend_from_slice(&start.to_le_bytes());
        summary.extend_from_slice(&offsets_start.to_le_bytes());
        // The checksum covers the length, which includes the checksum itself.
        let end_of_footer = (summary.len() - head + 4) as u64;
        summary[head - 8..head].copy_from_slice(&end_of_footer.to_le_bytes());
        let crc = crc32fast::hash(&summary);
        summary.extend_from_slice(&crc.to_le_bytes());
        self.out.extend_from_slice(&summary);
        self.out.extend_from_slice(MAGIC);
        self.write()?;
        self.file.sync_all()?;
        flushed
    }

    fn statistics(&self, out: &mut Vec<u8>) {
        let Summary { messages, start, end: last, chunks, metadata, .. } = self.summary;
        let head = begin(op::STATISTICS, out);
        out.extend_from_slice(&messages.to_le_bytes());
        out.extend_from_slice(&(self.schemas.len() as u16).to_le_bytes());
        for number in [self.channels.len() as u32, 0, metadata, chunks] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&start.to_le_bytes());
        out.extend_from_slice(&last.to_le_bytes());
        let mut counts = Vec::new();
        for (id, channel) in (1_u16..).zip(&self.channels).filter(|(_, channel)| channel.messages > 0) {
            counts.extend_from_slice(&id.to_le_bytes());
            counts.extend_from_slice(&channel.messages.to_le_bytes());
        }
        bytes(&counts, out);
        end(head, out);
    }

    /// Writes the bytes in `out`, or leaves the file unchanged.
    fn write(&mut self) -> io::Result<()> {
        let written = self.file.write_all(&self.out);
        if written.is_err() {
            // The caller gets the reason of the failed write. The next write replaces the rest.
            let _ = self.file.set_len(self.position);
            let _ = self.file.seek(SeekFrom::Start(self.position));
            return written;
        }
        self.position += self.out.len() as u64;
        self.crc.update(&self.out);
        Ok(())
    }
}

/// Compresses chunks.
struct Compressor {
    compression: Compression,
    zstd: Option<ZstdCompressor<'static>>,
    compressed: Vec<u8>,
}

impl Compressor {
    fn new(compression: Compression) -> io::Result<Compressor> {
        let zstd = (compression == Compression::Zstd).then(|| ZstdCompressor::new(ZSTD_LEVEL)).transpose()?;
        Ok(Compressor { compression, zstd, compressed: Vec::new() })
    }

    fn compress<'c>(&'c mut self, records: &'c [u8]) -> io::Result<&'c [u8]> {
        if self.compression == Compression::None {
            return Ok(records);
        }
        self.compressed.clear();
        match &mut self.zstd {
            Some(zstd) => {
                self.compressed.reserve(zstd::zstd_safe::compress_bound(records.len()));
                zstd.compress_to_buffer(records, &mut self.compressed)?;
            }
            None => {
                let mut encoder = lz4::EncoderBuilder::new().build(&mut self.compressed)?;
                encoder.write_all(records)?;
                encoder.finish().1?;
            }
        }
        Ok(&self.compressed)
    }
}

/// Begins a record; returns the offset behind its length.
fn begin(kind: u8, out: &mut Vec<u8>) -> usize {
    out.push(kind);
    out.extend_from_slice(&[0; HEAD - 1]);
    out.len()
}

/// Ends a record started by [`begin`].
fn end(start: usize, out: &mut [u8]) {
    let length = (out.len() - start) as u64;
    out[start - 8..start].copy_from_slice(&length.to_le_bytes());
}

fn bytes(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(value);
}

fn text(value: &str, out: &mut Vec<u8>) {
    bytes(value.as_bytes(), out);
}

fn pairs(map: &[(String, String)], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for (name, value) in map {
        text(name, out);
        text(value, out);
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}
