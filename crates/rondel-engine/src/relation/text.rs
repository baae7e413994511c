//! Interned texts.

use hashbrown::HashTable;
use serde::{Deserialize, Serialize};

use super::table::hash;

/// Interned texts of relations. Unused ones are swept whenever there are twice as many as were in use, so
/// that memory follows the live texts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Texts {
    texts: Vec<Box<[u8]>>,
    #[serde(skip)]
    marks: Vec<bool>,
    free: Vec<u32>,
    #[serde(skip)]
    index: HashTable<u32>,
    /// Number of constants, which come first and are never swept.
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
        self.index_text(id, hash);
        id.into()
    }

    fn index_text(&mut self, id: u32, hash: u64) {
        let texts = &self.texts;
        self.index.insert_unique(hash, id, |&id| hash_bytes(&texts[id as usize]));
    }

    /// Rebuilds the index after a snapshot was read. Returns false if the texts do not fit the constants of
    /// `own`.
    pub(crate) fn complete(&mut self, own: &Texts) -> bool {
        let len = self.texts.len();
        let mut is_used = vec![true; len];
        for &id in &self.free {
            match is_used.get_mut(id as usize) {
                Some(used) if *used => *used = false,
                _ => return false,
            }
        }
        self.marks = vec![false; len];
        for id in (0..len as u32).filter(|&id| is_used[id as usize]) {
            self.index_text(id, hash_bytes(&self.texts[id as usize]));
        }
        let constants = |texts: &Texts| texts.texts.get(..texts.constants).map(<[_]>::to_vec);
        constants(self).is_some() && constants(self) == constants(own)
    }

    #[inline(always)]
    pub(crate) fn get(&self, id: u64) -> &[u8] {
        self.texts.get(id as usize).map_or(&[], |text| text)
    }

    /// Number of texts.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether a [`sweep`](Texts::sweep) is due.
    #[inline(always)]
    pub(crate) fn is_due(&self) -> bool {
        self.index.len() > self.limit
    }

    pub(crate) fn mark(&mut self, id: u64) {
        if let Some(mark) = self.marks.get_mut(id as usize) {
            *mark = true;
        }
    }

    /// Removes all texts that are not marked.
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
