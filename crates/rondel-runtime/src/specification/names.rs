//! Names of topics that match an address with parameters, or that determine the meaning of messages.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use rondel_decode::Parameters;
use rondel_event::{Block, NameId, Path, Projection};

/// Maximum number of names distinguished per topic. Messages of further ones have no parameters.
const MOST: usize = 1 << 16;
/// Maximum size of all names together, in bytes.
const BYTES: usize = 16 << 20;

/// The texts of the parameters, in the order of the address.
type Texts = Arc<[Box<str>]>;

/// Names seen so far of a topic whose address has parameters, such as `fleet/{robot}/pose`, or whose encoding reads
/// them. The receiver of a message turns the name of its topic into a number, and the session turns the number into the
/// parameters.
#[derive(Debug)]
pub struct TopicNames {
    /// `None` where every name belongs to the topic, and gives no parameters.
    parameters: Option<Parameters>,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<Arc<str>, NameId>,
    /// By number.
    texts: Vec<Texts>,
    names: Vec<Arc<str>>,
    /// The bytes of all names.
    bytes: usize,
}

impl TopicNames {
    /// Creates the names of a topic with this address; `None` if no name has parameters, unless the encoding reads
    /// them.
    pub(crate) fn of(names: &[String], is_read: bool) -> Option<TopicNames> {
        let parameters = Parameters::of(names, &Projection::default());
        (is_read || parameters.is_some()).then(|| TopicNames { parameters, known: RwLock::default() })
    }

    /// The number of a name; `None` if it does not match the address. Names beyond a limit all have the same number,
    /// which gives no parameters.
    pub fn number(&self, name: &str) -> Option<NameId> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.numbers.get(name) {
            return Some(*number);
        }
        let is_full = known.texts.len() >= MOST || known.bytes.saturating_add(name.len()) > BYTES;
        drop(known);
        let texts: Texts = match &self.parameters {
            Some(parameters) => parameters.captures(name)?.into_iter().map(Box::from).collect(),
            None => Texts::default(),
        };
        if is_full {
            return Some(NameId(MOST as u32));
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.numbers.get(name) {
            return Some(*number);
        }
        let number = NameId(known.texts.len() as u32);
        known.bytes += name.len();
        known.texts.push(texts);
        let name: Arc<str> = name.into();
        known.names.push(Arc::clone(&name));
        known.numbers.insert(name, number);
        Some(number)
    }

    /// The name with a number; `None` if it is beyond the limit.
    pub fn name(&self, number: NameId) -> Option<Arc<str>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.names.get(number.0 as usize).cloned()
    }

    /// Whether a field at this path is a parameter.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.parameters.as_ref().is_some_and(|parameters| parameters.has(path))
    }

    fn texts_from(&self, first: usize) -> Vec<Texts> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.texts.get(first..).unwrap_or_default().to_vec()
    }
}

/// Writes the parameters of the topics of one session.
pub(crate) struct NamedTopics {
    topics: Vec<Option<NamedTopic>>,
}

struct NamedTopic {
    parameters: Parameters,
    names: Arc<TopicNames>,
    /// Parameters of the names needed so far.
    texts: Vec<Texts>,
}

impl NamedTopics {
    /// Creates the writer for topics with these names and fields.
    pub(crate) fn new(
        names: &[Option<Arc<TopicNames>>],
        called: impl Iterator<Item = Vec<String>>,
        projections: &[Projection],
    ) -> NamedTopics {
        let topic =
            |((names, called), projection): ((&Option<Arc<TopicNames>>, Vec<String>), &Projection)| {
                let names = Arc::clone(names.as_ref()?);
                Some(NamedTopic {
                    parameters: Parameters::of(&called, projection)?,
                    names,
                    texts: Vec::new(),
                })
            };
        let mut topics: Vec<_> = names.iter().zip(called).zip(projections).map(topic).collect();
        if topics.iter().all(Option::is_none) {
            topics.clear();
        }
        NamedTopics { topics }
    }

    /// Writes the parameters that the name of a message gives, into its row.
    #[inline]
    pub(crate) fn write(&mut self, topic: usize, name: Option<NameId>, block: &mut Block, row: usize) {
        if let (Some(Some(topic)), Some(name)) = (self.topics.get_mut(topic), name) {
            topic.write(name.0 as usize, block, row);
        }
    }
}

impl NamedTopic {
    fn write(&mut self, name: usize, block: &mut Block, row: usize) {
        if name >= self.texts.len() {
            self.texts.extend(self.names.texts_from(self.texts.len()));
        }
        if let Some(texts) = self.texts.get(name) {
            self.parameters.write(texts, block, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers_up_to_a_limit() {
        let names = TopicNames::of(&["pose".to_owned(), "/fleet/{robot}/pose".to_owned()], false).unwrap();
        assert_eq!(names.number("fleet/r1/pose"), Some(NameId(0)));
        assert_eq!(names.number("/fleet/r2/pose"), Some(NameId(1)));
        assert_eq!(names.number("fleet/r1/pose"), Some(NameId(0)));
        assert_eq!(names.number("fleet/r1/speed"), None);
        assert_eq!(names.texts_from(1).concat(), ["r2".into()]);
        for i in 0..2 * MOST {
            names.number(&format!("fleet/n{i}/pose"));
        }
        assert_eq!(names.number("fleet/another/pose"), Some(NameId(MOST as u32)));
        assert_eq!(names.texts_from(0).len(), MOST);
        assert!(TopicNames::of(&["pose".to_owned()], false).is_none());
        let all = TopicNames::of(&["pose".to_owned()], true).unwrap();
        assert_eq!(
            (all.number("a"), all.number("b"), all.number("a")),
            (Some(NameId(0)), Some(NameId(1)), Some(NameId(0)))
        );
        // However long they are.
        let names = TopicNames::of(&["{robot}".to_owned()], false).unwrap();
        let long = "r".repeat(1 << 20);
        let known = (0..40).filter(|i| names.number(&format!("{long}{i}")) != Some(NameId(MOST as u32)));
        assert_eq!(known.count(), 15);
    }
}
