//! Lasting relations: hash tables of tuples.

mod saved;

use hashbrown::HashTable;
use serde::{Deserialize, Serialize};

/// No row.
pub(crate) const NONE: u32 = u32::MAX;

/// Metadata of a tuple. Each operator uses the fields that it needs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// Time at which it last held, or another time that determines how long it stays.
    pub(crate) time: i64,
    /// Tick of that time.
    pub(crate) tick: u64,
    /// Times before this tick have ended.
    pub(crate) cut: u64,
    /// Number of derivations, or of queued times.
    pub(crate) count: u32,
    /// Whether the row is in use.
    pub(crate) live: bool,
    /// Whether the tuple is in the relation; others are waiting.
    pub(crate) present: bool,
    /// Whether the tuple was in the relation before this tick; valid while `touched`.
    pub(crate) was_present: bool,
    pub(crate) touched: bool,
    /// Whether the operand contains it now.
    pub(crate) held: bool,
    linked: bool,
    before: u32,
    after: u32,
}

const EMPTY: Meta = Meta {
    time: 0,
    tick: 0,
    cut: 0,
    count: 0,
    live: false,
    present: false,
    was_present: false,
    touched: false,
    held: false,
    linked: false,
    before: NONE,
    after: NONE,
};

/// Access path to the rows with given values in some columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// All rows: no column is given.
    All,
    /// All columns are given: at most one row.
    Whole,
    /// By the index of this number.
    Index(u32),
}

/// Set of tuples with stable row numbers, indexes over some of the columns, and a list of rows ordered by
/// time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TupleTable {
    arity: usize,
    values: Vec<u64>,
    meta: Vec<Meta>,
    free: Vec<u32>,
    #[serde(skip)]
    primary: HashTable<u32>,
    #[serde(skip)]
    indexes: Vec<ColumnIndex>,
    first: u32,
    last: u32,
    /// Rows touched in this tick.
    #[serde(skip)]
    touched: Vec<u32>,
    /// Undo journal of the speculative step, if there is one.
    journal: Option<Journal>,
}

/// Speculative changes in order, and the ends of the list before them.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Journal {
    first: u32,
    last: u32,
    undo: Vec<Undo>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Undo {
    /// The row had this metadata.
    Meta(u32, Meta),
    /// The row was absent.
    Inserted(u32),
    /// The row had this metadata and these values.
    Removed(u32, Meta, Box<[u64]>),
}

/// Index by some columns: for each combination of values a chain of rows.
#[derive(Clone, Debug)]
struct ColumnIndex {
    columns: Vec<u32>,
    heads: HashTable<u32>,
    before: Vec<u32>,
    after: Vec<u32>,
}

/// Returns a hash of words.
#[inline(always)]
pub(crate) fn hash(words: impl IntoIterator<Item = u64>) -> u64 {
    let mut hash = 0x243F_6A88_85A3_08D3_u64;
    for word in words {
        let product = u128::from(hash ^ word) * 0x9E37_79B9_7F4A_7C15_u128;
        hash = (product as u64 ^ (product >> 64) as u64).rotate_left(23);
    }
    let product = u128::from(hash) * 0xD6E8_FEB8_6659_FD93_u128;
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn row_values(values: &[u64], arity: usize, row: u32) -> &[u64] {
    &values[row as usize * arity..(row as usize + 1) * arity]
}

impl ColumnIndex {
    #[inline(always)]
    fn hash_row(&self, tuple: &[u64]) -> u64 {
        hash(self.columns.iter().map(|&c| tuple[c as usize]))
    }

    fn add(&mut self, values: &[u64], arity: usize, row: u32) {
        let needed = row as usize + 1;
        if self.after.len() < needed {
            self.after.resize(needed, NONE);
            self.before.resize(needed, NONE);
        }
        let tuple = row_values(values, arity, row);
        let hash = self.hash_row(tuple);
        let columns = &self.columns;
        let same = |&head: &u32| {
            let other = row_values(values, arity, head);
            columns.iter().all(|&c| other[c as usize] == tuple[c as usize])
        };
        self.before[row as usize] = NONE;
        match self.heads.find_mut(hash, same) {
            Some(head) => {
                self.after[row as usize] = *head;
                self.before[*head as usize] = row;
                *head = row;
            }
            None => {
                self.after[row as usize] = NONE;
                let rehash = |&head: &u32| {
                    let tuple = row_values(values, arity, head);
                    self::hash(columns.iter().map(|&c| tuple[c as usize]))
                };
                self.heads.insert_unique(hash, row, rehash);
            }
        }
    }

    fn remove(&mut self, values: &[u64], arity: usize, row: u32) {
        let (before, after) = (self.before[row as usize], self.after[row as usize]);
        if after != NONE {
            self.before[after as usize] = before;
        }
        if before != NONE {
            self.after[before as usize] = after;
            return;
        }
        let hash = self.hash_row(row_values(values, arity, row));
        if let Ok(mut entry) = self.heads.find_entry(hash, |&head| head == row) {
            if after == NONE {
                entry.remove();
            } else {
                *entry.get_mut() = after;
            }
        }
    }
}

impl TupleTable {
    /// Number of values per tuple.
    pub(crate) fn arity(&self) -> usize {
        self.arity
    }

    pub(crate) fn new(arity: usize, indexes: &[Vec<u32>]) -> TupleTable {
        let index = |columns: &Vec<u32>| ColumnIndex {
            columns: columns.clone(),
            heads: HashTable::new(),
            before: Vec::new(),
            after: Vec::new(),
        };
        TupleTable {
            arity,
            values: Vec::new(),
            meta: Vec::new(),
            free: Vec::new(),
            primary: HashTable::new(),
            indexes: indexes.iter().map(index).collect(),
            first: NONE,
            last: NONE,
            touched: Vec::new(),
            journal: None,
        }
    }

    /// Starts a speculative step, to be [confirmed](TupleTable::confirm) or [rolled
    /// back](TupleTable::roll_back).
    pub(crate) fn begin_speculation(&mut self) {
        self.journal = Some(Journal { first: self.first, last: self.last, undo: Vec::new() });
    }

    pub(crate) fn confirm(&mut self) {
        self.journal = None;
    }

    pub(crate) fn roll_back(&mut self) {
        let Some(Journal { first, last, undo }) = self.journal.take() else { return };
        for undo in undo.into_iter().rev() {
            match undo {
                Undo::Meta(row, meta) => self.meta[row as usize] = meta,
                Undo::Inserted(row) => {
                    self.unindex_row(row);
                    self.meta[row as usize] = EMPTY;
                    self.free.push(row);
                }
                Undo::Removed(row, meta, values) => {
                    self.free.pop();
                    let start = row as usize * self.arity;
                    self.values[start..start + self.arity].copy_from_slice(&values);
                    self.meta[row as usize] = meta;
                    self.index_row(row);
                }
            }
        }
        (self.first, self.last) = (first, last);
    }

    /// Adds a row to the hash table and the indexes.
    fn index_row(&mut self, row: u32) {
        let (values, arity) = (&self.values, self.arity);
        let rehash = |&row: &u32| self::hash(row_values(values, arity, row).iter().copied());
        self.primary.insert_unique(rehash(&row), row, rehash);
        for index in &mut self.indexes {
            index.add(values, arity, row);
        }
    }

    /// Removes a row from the hash table and the indexes.
    fn unindex_row(&mut self, row: u32) {
        let hash = hash(self.tuple(row).iter().copied());
        if let Ok(entry) = self.primary.find_entry(hash, |&other| other == row) {
            entry.remove();
        }
        for index in &mut self.indexes {
            index.remove(&self.values, self.arity, row);
        }
    }

    #[inline(always)]
    fn note(&mut self, row: u32) {
        if let Some(journal) = &mut self.journal {
            journal.undo.push(Undo::Meta(row, self.meta[row as usize]));
        }
    }

    /// Number of rows in use.
    pub(crate) fn len(&self) -> usize {
        self.primary.len()
    }

    #[inline(always)]
    pub(crate) fn tuple(&self, row: u32) -> &[u64] {
        row_values(&self.values, self.arity, row)
    }

    #[inline(always)]
    pub(crate) fn meta(&mut self, row: u32) -> &mut Meta {
        self.note(row);
        &mut self.meta[row as usize]
    }

    /// Returns the count of a row.
    pub(crate) fn count(&self, row: u32) -> u32 {
        self.meta[row as usize].count
    }

    #[inline(always)]
    pub(crate) fn find(&self, tuple: &[u64]) -> Option<u32> {
        let hash = hash(tuple.iter().copied());
        self.primary.find(hash, |&row| self.tuple(row) == tuple).copied()
    }

    /// Returns the row of a tuple, adding one if it is absent.
    #[inline(always)]
    pub(crate) fn insert(&mut self, tuple: &[u64]) -> u32 {
        let hash = hash(tuple.iter().copied());
        if let Some(&row) = self.primary.find(hash, |&row| self.tuple(row) == tuple) {
            return row;
        }
        let row = match self.free.pop() {
            Some(row) => {
                let start = row as usize * self.arity;
                self.values[start..start + self.arity].copy_from_slice(tuple);
                self.meta[row as usize] = EMPTY;
                row
            }
            None => {
                self.values.extend_from_slice(tuple);
                self.meta.push(EMPTY);
                self.meta.len() as u32 - 1
            }
        };
        self.meta[row as usize].live = true;
        self.index_row(row);
        if let Some(journal) = &mut self.journal {
            journal.undo.push(Undo::Inserted(row));
        }
        row
    }

    pub(crate) fn remove(&mut self, row: u32) {
        self.unlink(row);
        self.unindex_row(row);
        if self.journal.is_some() {
            let undo = Undo::Removed(row, self.meta[row as usize], self.tuple(row).into());
            self.journal.iter_mut().for_each(|journal| journal.undo.push(undo.clone()));
        }
        self.meta[row as usize].live = false;
        self.meta[row as usize].present = false;
        self.free.push(row);
    }

    /// Marks a row whose tuple may enter or leave the relation.
    #[inline(always)]
    pub(crate) fn touch(&mut self, row: u32) {
        self.note(row);
        let meta = &mut self.meta[row as usize];
        if !meta.touched {
            (meta.touched, meta.was_present) = (true, meta.present);
            self.touched.push(row);
        }
    }

    /// Emits the tuples that entered or left since the last call, and removes the rows that are neither in
    /// the relation nor `kept`.
    #[inline(always)]
    pub(crate) fn settle(&mut self, mut changed: impl FnMut(&[u64], i8), kept: impl Fn(&Meta) -> bool) {
        for i in 0..self.touched.len() {
            let row = self.touched[i];
            self.note(row);
            let meta = &mut self.meta[row as usize];
            meta.touched = false;
            let meta = *meta;
            if meta.present != meta.was_present {
                changed(self.tuple(row), if meta.present { 1 } else { -1 });
            }
            if !meta.present && !kept(&meta) {
                self.remove(row);
            }
        }
        self.touched.clear();
    }

    /// Moves the row to the end of the list.
    #[inline(always)]
    pub(crate) fn link_last(&mut self, row: u32) {
        if self.last == row {
            return;
        }
        self.unlink(row);
        let last = self.last;
        self.note(row);
        if last != NONE {
            self.note(last);
        }
        let meta = &mut self.meta[row as usize];
        (meta.linked, meta.before, meta.after) = (true, last, NONE);
        match last {
            NONE => self.first = row,
            last => self.meta[last as usize].after = row,
        }
        self.last = row;
    }

    #[inline(always)]
    pub(crate) fn unlink(&mut self, row: u32) {
        let Meta { linked, before, after, .. } = self.meta[row as usize];
        if !linked {
            return;
        }
        for changed in [row, before, after] {
            if changed != NONE {
                self.note(changed);
            }
        }
        match before {
            NONE => self.first = after,
            before => self.meta[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.meta[after as usize].before = before,
        }
        self.meta[row as usize].linked = false;
    }

    /// Returns the first row of the list, with its metadata.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<(u32, &Meta)> {
        let row = self.first;
        self.meta.get(row as usize).map(|meta| (row, meta))
    }

    /// Returns the next row of the list.
    #[cfg(test)]
    pub(crate) fn next(&self, row: u32) -> u32 {
        self.meta[row as usize].after
    }

    /// Returns all rows in use.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u32> {
        self.meta.iter().enumerate().filter(|(_, meta)| meta.live).map(|(row, _)| row as u32)
    }

    /// Returns the tuples of the relation.
    pub(crate) fn present(&self) -> impl Iterator<Item = &[u64]> {
        let present = self.meta.iter().enumerate().filter(|(_, meta)| meta.present);
        present.map(|(row, _)| self.tuple(row as u32))
    }

    /// Returns the rows, including waiting ones, that have `key` in the columns of an access.
    #[inline(always)]
    pub(crate) fn matching(&self, access: Access, key: &[u64]) -> Matching<'_> {
        match access {
            Access::All => Matching { table: self, chain: None, row: 0 },
            Access::Whole => Matching { table: self, chain: Some(&[]), row: self.find(key).unwrap_or(NONE) },
            Access::Index(index) => {
                let index = &self.indexes[index as usize];
                let same = |&row: &u32| {
                    let tuple = self.tuple(row);
                    index.columns.iter().zip(key).all(|(&c, &value)| tuple[c as usize] == value)
                };
                let head = index.heads.find(hash(key.iter().copied()), same);
                Matching { table: self, chain: Some(&index.after), row: head.copied().unwrap_or(NONE) }
            }
        }
    }

    /// Returns the next row of an index chain.
    pub(crate) fn follow(&self, access: Access, row: u32) -> u32 {
        match access {
            Access::All | Access::Whole => NONE,
            Access::Index(index) => self.indexes[index as usize].after[row as usize],
        }
    }

    /// Whether the relation has a tuple with `key` in the columns of an access.
    #[inline(always)]
    pub(crate) fn has(&self, access: Access, key: &[u64]) -> bool {
        self.matching(access, key).any(|row| self.meta[row as usize].present)
    }

    /// Returns the tuples of the relation with `key` in the columns of an access.
    #[inline(always)]
    pub(crate) fn tuples(&self, access: Access, key: &[u64]) -> impl Iterator<Item = &[u64]> {
        let present = self.matching(access, key).filter(|&row| self.meta[row as usize].present);
        present.map(|row| self.tuple(row))
    }
}

/// Iterator over rows.
pub(crate) struct Matching<'a> {
    table: &'a TupleTable,
    /// Next row of each; without it the iterator visits all rows of the table.
    chain: Option<&'a [u32]>,
    row: u32,
}

impl Matching<'_> {
    /// Returns the first row of a chain.
    pub(crate) fn cursor(&self) -> u32 {
        self.row
    }
}

impl Iterator for Matching<'_> {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        let row = self.row;
        match self.chain {
            None => {
                let live = |meta: &Meta| meta.live;
                let skipped = self.table.meta.get(row as usize..)?.iter().position(live)?;
                let row = row + skipped as u32;
                self.row = row + 1;
                Some(row)
            }
            Some(_) if row == NONE => None,
            Some(chain) => {
                self.row = chain.get(row as usize).copied().unwrap_or(NONE);
                Some(row)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_lookup_equals_scan() {
        let mut table = TupleTable::new(3, &[vec![1], vec![0, 2]]);
        let mut model: Vec<[u64; 3]> = Vec::new();
        let mut x = 7_u64;
        for step in 0..4000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let tuple = [x >> 60, x >> 50 & 7, x >> 40 & 3];
            if x >> 20 & 1 == 0 {
                let row = table.insert(&tuple);
                table.meta(row).present = true;
                table.link_last(row);
                model.retain(|other| *other != tuple);
                model.push(tuple);
            } else if let Some(row) = table.find(&tuple) {
                table.remove(row);
                model.retain(|other| *other != tuple);
            }
            if step % 17 == 0 {
                let mut listed = Vec::new();
                let mut row = table.first().map_or(NONE, |(row, _)| row);
                while row != NONE {
                    listed.push(<[u64; 3]>::try_from(table.tuple(row)).unwrap());
                    row = table.next(row);
                }
                assert_eq!(listed, model);
                let sorted = |mut tuples: Vec<Vec<u64>>| {
                    tuples.sort();
                    tuples
                };
                let expected = |keep: &dyn Fn(&[u64; 3]) -> bool| {
                    sorted(model.iter().filter(|t| keep(t)).map(|t| t.to_vec()).collect())
                };
                let found =
                    |access, key: &[u64]| sorted(table.tuples(access, key).map(|t| t.to_vec()).collect());
                assert_eq!(found(Access::All, &[]), expected(&|_| true));
                assert_eq!(found(Access::Whole, &tuple), expected(&|t| *t == tuple));
                assert_eq!(found(Access::Index(0), &tuple[1..2]), expected(&|t| t[1] == tuple[1]));
                let key = [tuple[0], tuple[2]];
                assert_eq!(found(Access::Index(1), &key), expected(&|t| [t[0], t[2]] == key));
            }
        }
        assert_eq!(table.len(), model.len());
    }
}
