//! Texts as numbers.

use hashbrown::HashTable;

use super::table::hash;

/// Every text that a relation may hold, once. What no relation holds any more is swept out whenever
/// there are twice as many texts as were in use, so that memory follows what is alive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    texts: Vec<Box<[u8]>>,
    marks: Vec<bool>,
    free: Vec<u32>,
    index: HashTable<u32>,
    /// The first ones are constants, and stay.
    constants: usize,
    limit: usize,
}

fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain(std::iter::once(&last)).map(|word| u64::from_le_bytes(*word));
    hash(words.chain([bytes.len() as u64]))
}

impl Texts {
    pub(crate) fn new(constants: &[Box<str>]) -> Texts {
        let mut texts = Texts { limit: 64, ..Texts::default() };
        for constant in constants {
            texts.intern(constant.as_bytes());
        }
        texts.constants = texts.texts.len();
        texts
    }

    pub(crate) fn intern(&mut self, bytes: &[u8]) -> u64 {
        let hash = hash_bytes(bytes);
        if let Some(&id) = self.index.find(hash, |&id| *self.texts[id as usize] == *bytes) {
            return id.into();
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.texts[id as usize] = bytes.into();
                id
            }
            None => {
                self.texts.push(bytes.into());
                self.marks.push(false);
                self.texts.len() as u32 - 1
            }
        };
        let texts = &self.texts;
        self.index.insert_unique(hash, id, |&id| hash_bytes(&texts[id as usize]));
        id.into()
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: u64) -> &[u8] {
        self.texts.get(id as usize).map_or(&[], |text| text)
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether it is time to [`sweep`](Texts::sweep).
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        self.index.len() > self.limit
    }

    pub(crate) fn mark(&mut self, id: u64) {
        self.marks[id as usize] = true;
    }

    /// Forgets all that is not marked.
    pub(crate) fn sweep(&mut self) {
        self.marks[..self.constants].fill(true);
        let (marks, texts, free) = (&self.marks, &mut self.texts, &mut self.free);
        self.index.retain(|&mut id| {
            if !marks[id as usize] {
                texts[id as usize] = Box::default();
                free.push(id);
            }
            marks[id as usize]
        });
        self.marks.fill(false);
        self.limit = (2 * self.index.len()).max(64);
    }
}
