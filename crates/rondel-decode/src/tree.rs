//! Tree of the values of a message that are read.

use rondel_event::{Named, Path, Segment};

/// Values in a value, each with the key `Q` that leads to it.
pub(crate) type Children<Q, K, N, R> = Vec<(Q, Tree<K, N, R>)>;

/// A value of a message and the values in it, with the reads `R` of each. Members have keys `K`, elements with a name have
/// it as `N`: borrowed while a plan is compiled, owned in a plan.
#[derive(Clone, Debug)]
pub(crate) struct Tree<K, N, R> {
    pub(crate) keys: Children<K, K, N, R>,
    pub(crate) indices: Children<u32, K, N, R>,
    /// Elements by their positions from the end, from 1.
    pub(crate) ends: Children<u32, K, N, R>,
    /// Elements identified by a name that they contain.
    pub(crate) named: Children<N, K, N, R>,
    /// Elements of a member array, identified by the names in another member array.
    pub(crate) parallel: Children<(K, N), K, N, R>,
    pub(crate) reads: Vec<R>,
}

impl<K, N, R> Default for Tree<K, N, R> {
    fn default() -> Tree<K, N, R> {
        Tree {
            keys: Vec::new(),
            indices: Vec::new(),
            ends: Vec::new(),
            named: Vec::new(),
            parallel: Vec::new(),
            reads: Vec::new(),
        }
    }
}

impl<K: PartialEq, N: PartialEq, R> Tree<K, N, R> {
    /// Returns the value at a path, adding it if it is missing.
    pub(crate) fn at<'p>(&mut self, path: &'p Path) -> &mut Tree<K, N, R>
    where
        K: From<&'p str>,
        N: From<&'p Named>,
    {
        let mut tree = self;
        let mut segments = path.0.iter().peekable();
        while let Some(segment) = segments.next() {
            tree = match (segment, segments.peek()) {
                (Segment::Key(key), Some(Segment::Named(named))) if named.is_parallel => {
                    segments.next();
                    child(&mut tree.parallel, (K::from(&**key), N::from(&**named)))
                }
                (Segment::Key(key), _) => child(&mut tree.keys, K::from(&**key)),
                (Segment::Index(index), _) => child(&mut tree.indices, *index),
                (Segment::FromEnd(index), _) => child(&mut tree.ends, *index),
                (Segment::Named(named), _) => child(&mut tree.named, N::from(&**named)),
            };
        }
        tree
    }

    /// Returns the member with this key, adding it if it is missing.
    pub(crate) fn member(&mut self, key: K) -> &mut Tree<K, N, R> {
        child(&mut self.keys, key)
    }
}

fn child<K: PartialEq, V: Default>(children: &mut Vec<(K, V)>, key: K) -> &mut V {
    let found = children.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        children.push((key, V::default()));
        children.len() - 1
    });
    &mut children[found].1
}
