//! Restoring a table from a snapshot: hash table and indexes follow from the rows.

use super::{ColumnIndex, Journal, Meta, NONE, TupleTable, Undo};

impl TupleTable {
    /// Rebuilds the indexes after a snapshot was read, given an empty table of the same kind. Returns false
    /// if the rows do not fit it.
    pub(crate) fn complete(&mut self, own: &TupleTable) -> bool {
        let len = self.meta.len();
        let sizes = self.arity == own.arity
            && u32::try_from(len).is_ok_and(|len| len < NONE)
            && len.checked_mul(self.arity) == Some(self.values.len());
        if !sizes || !self.has_sound_rows() {
            return false;
        }
        let index = |index: &ColumnIndex| ColumnIndex {
            before: vec![NONE; len],
            after: vec![NONE; len],
            ..index.clone()
        };
        self.indexes = own.indexes.iter().map(index).collect();
        let live: Vec<u32> = self.rows().collect();
        live.into_iter().for_each(|row| self.index_row(row));
        true
    }

    /// Whether a row of this number exists.
    pub(crate) fn has_row(&self, row: u32) -> bool {
        (row as usize) < self.meta.len()
    }

    fn has_sound_rows(&self) -> bool {
        let may_be = |row: u32| row == NONE || self.has_row(row);
        let links = |meta: &Meta| may_be(meta.before) && may_be(meta.after);
        let undo = |undo: &Undo| match undo {
            Undo::Meta(row, meta) => self.has_row(*row) && links(meta),
            Undo::Inserted(row) => self.has_row(*row),
            Undo::Removed(row, meta, values) => {
                self.has_row(*row) && links(meta) && values.len() == self.arity
            }
        };
        let journal = |Journal { first, last, undo: all }: &Journal| {
            may_be(*first) && may_be(*last) && all.iter().all(undo)
        };
        self.meta.iter().all(links)
            && self.free.iter().all(|&row| self.has_row(row) && !self.meta[row as usize].live)
            && self.journal.iter().all(journal)
            && self.is_one_list()
    }

    /// Whether the linked rows form one list.
    fn is_one_list(&self) -> bool {
        let (mut before, mut row) = (NONE, self.first);
        for _ in 0..=self.meta.len() {
            let Some(meta) = self.meta.get(row as usize) else { break };
            if !meta.linked || meta.before != before {
                return false;
            }
            (before, row) = (row, meta.after);
        }
        // A cyclic list never ends.
        row == NONE && before == self.last
    }
}
