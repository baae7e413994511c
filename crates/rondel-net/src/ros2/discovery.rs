//! Nodes of a participant of DDS, as ROS 2 announces them: messages in CDR on a separate topic.
//!
//! Each participant publishes its nodes, reliably and transient local, with the ids of their readers and writers.

use super::NodeName;

/// Name of the topic in DDS.
pub const TOPIC: &str = "ros_discovery_info";
/// Name of the type in DDS.
pub const TYPE: &str = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";

/// Size of an id in messages. Up to ROS 2 Humble there are 24 bytes, the last 8 of them zero.
const GID: usize = 16;
const OLD_GID: usize = 24;

/// The id of a participant, reader or writer: its GUID in DDS.
pub type Gid = [u8; GID];

/// A participant and its nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParticipantNodes {
    /// The participant.
    pub gid: Gid,
    /// Its nodes.
    pub nodes: Vec<NodeEntities>,
}

/// A node with its readers and writers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEntities {
    /// The node.
    pub node: NodeName,
    /// The ids of its readers.
    pub readers: Vec<Gid>,
    /// The ids of its writers.
    pub writers: Vec<Gid>,
}

impl ParticipantNodes {
    /// Returns the message, little-endian, as ROS 2 writes it since Iron.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![0, 1, 0, 0];
        bytes.extend_from_slice(&self.gid);
        write_length(&mut bytes, self.nodes.len());
        for NodeEntities { node, readers, writers } in &self.nodes {
            for text in [node.namespace(), node.name()] {
                write_length(&mut bytes, text.len() + 1);
                bytes.extend_from_slice(text.as_bytes());
                bytes.push(0);
            }
            for gids in [readers, writers] {
                write_length(&mut bytes, gids.len());
                gids.iter().for_each(|gid| bytes.extend_from_slice(gid));
            }
        }
        bytes
    }

    /// Parses a message; `None` for other bytes.
    pub fn read(bytes: &[u8]) -> Option<ParticipantNodes> {
        Reader::new(bytes, GID)?.participant().or_else(|| Reader::new(bytes, OLD_GID)?.participant())
    }
}

/// Writes a length, aligned to 4 bytes.
fn write_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    // Names are limited, and participants have fewer than 2^32 readers.
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

/// Sequential reader of CDR. Memory is not reserved for unchecked lengths.
struct Reader<'a> {
    /// Bytes after the header.
    bytes: &'a [u8],
    at: usize,
    is_little: bool,
    /// Size of an id.
    gid: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], gid: usize) -> Option<Reader<'a>> {
        let (header, bytes) = bytes.split_first_chunk::<4>()?;
        let is_little = match header {
            [0, 0, ..] => false,
            [0, 1, ..] => true,
            _ => return None,
        };
        Some(Reader { bytes, at: 0, is_little, gid })
    }

    fn participant(&mut self) -> Option<ParticipantNodes> {
        let gid = self.gid()?;
        let mut nodes = Vec::new();
        for _ in 0..self.length()? {
            let (namespace, name) = (self.text()?, self.text()?);
            let node = NodeName::new(namespace, name).ok()?;
            let (readers, writers) = (self.gids()?, self.gids()?);
            nodes.push(NodeEntities { node, readers, writers });
        }
        // Some writers pad the last word.
        (self.bytes.len() - self.at < 4).then_some(ParticipantNodes { gid, nodes })
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn length(&mut self) -> Option<u32> {
        self.take(self.at.next_multiple_of(4) - self.at)?;
        let length = self.take(4)?.try_into().ok()?;
        Some(if self.is_little { u32::from_le_bytes(length) } else { u32::from_be_bytes(length) })
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.length()? as usize;
        let text = self.take(length)?.strip_suffix(&[0])?;
        std::str::from_utf8(text).ok()
    }

    fn gid(&mut self) -> Option<Gid> {
        let (gid, rest) = self.take(self.gid)?.split_first_chunk()?;
        rest.iter().all(|byte| *byte == 0).then_some(*gid)
    }

    fn gids(&mut self) -> Option<Vec<Gid>> {
        let count = self.length()?;
        let mut gids = Vec::new();
        for _ in 0..count {
            gids.push(self.gid()?);
        }
        Some(gids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nodes() -> ParticipantNodes {
        let gid = |first: u8| std::array::from_fn(|i| first + i as u8);
        let node = |text: &str, readers, writers| NodeEntities {
            node: NodeName::parse(text).unwrap(),
            readers,
            writers,
        };
        ParticipantNodes {
            gid: gid(1),
            nodes: vec![
                node("/rondel", vec![gid(20), gid(40)], vec![]),
                node("/robot1/front/camera", vec![], vec![gid(60)]),
            ],
        }
    }

    /// A message written by the Python package rosbags from the definition of the type.
    const WRITTEN: &str = "000100000102030405060708090a0b0c0d0e0f1002000000020000002f00000007000000726f6e64656c0000020000001415161718191a1b1c1d1e1f2021222328292a2b2c2d2e2f3031323334353637000000000e0000002f726f626f74312f66726f6e740000000700000063616d657261000000000000010000003c3d3e3f404142434445464748494a4b";

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    }

    #[test]
    fn messages_are_those_of_an_independent_writer() {
        assert_eq!(nodes().write(), hex(WRITTEN));
        assert_eq!(ParticipantNodes::read(&hex(WRITTEN)), Some(nodes()));
        for length in 0..hex(WRITTEN).len() {
            assert_eq!(ParticipantNodes::read(&hex(WRITTEN)[..length]), None, "{length}");
        }
    }

    #[test]
    fn older_and_big_endian_messages_are_read() {
        let gid = |first: u8| -> Vec<u8> { (first..first + 16).chain([0; 8]).collect() };
        let text = |text: &str| [&(text.len() as u32 + 1).to_be_bytes()[..], text.as_bytes(), &[0]].concat();
        let name = text("rondel");
        let parts: [&[u8]; 9] = [
            &[0, 0, 0, 0],
            &gid(1),
            &1u32.to_be_bytes(),
            &text("/"),
            &[0; 2],
            &name,
            &[0; 1],
            &[0, 0, 0, 1],
            &[&gid(20)[..], &[0; 4]].concat(),
        ];
        let read = ParticipantNodes::read(&parts.concat()).unwrap();
        assert_eq!((read.gid, read.nodes.len()), (nodes().gid, 1));
        assert_eq!(read.nodes[0].readers, [nodes().nodes[0].readers[0]]);
        // A length beyond the message.
        let mut huge = hex(WRITTEN);
        huge[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(ParticipantNodes::read(&huge), None);
    }

    proptest! {
        #[test]
        fn written_messages_are_read_back(
            gid in any::<Gid>(),
            all in proptest::collection::vec(
                ("(/[a-z]{1,5}){0,3}", "[a-z]{1,9}", proptest::collection::vec(any::<Gid>(), 0..3), proptest::collection::vec(any::<Gid>(), 0..3)),
                0..4,
            ),
        ) {
            let node = |(namespace, name, readers, writers): (String, String, Vec<Gid>, Vec<Gid>)| NodeEntities {
                node: NodeName::new(&namespace, &name).unwrap(),
                readers,
                writers,
            };
            let participant = ParticipantNodes { gid, nodes: all.into_iter().map(node).collect() };
            prop_assert_eq!(ParticipantNodes::read(&participant.write()), Some(participant));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            _ = ParticipantNodes::read(&bytes);
            _ = ParticipantNodes::read(&[&[0, 1, 0, 0], &bytes[..]].concat());
        }
    }
}
