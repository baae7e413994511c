//! Saved forms of types of other crates, for `#[serde(with = …)]`.

/// Values of machines.
pub(crate) mod values {
    use rondel_event::Value;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    enum SavedValue {
        Unknown,
        Bool(bool),
        Int(i64),
        Float(f64),
        Time(i64),
        Duration(i64),
        String(Box<str>),
    }

    pub(crate) fn serialize<S: Serializer>(values: &[Option<Value>], to: S) -> Result<S::Ok, S::Error> {
        let saved = |value: &Option<Value>| match value {
            None => SavedValue::Unknown,
            Some(Value::Bool(x)) => SavedValue::Bool(*x),
            Some(Value::Int(x)) => SavedValue::Int(*x),
            Some(Value::Float(x)) => SavedValue::Float(*x),
            Some(Value::Time(x)) => SavedValue::Time(*x),
            Some(Value::Duration(x)) => SavedValue::Duration(*x),
            Some(Value::String(x)) => SavedValue::String(x.clone()),
        };
        values.iter().map(saved).collect::<Vec<_>>().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Option<Value>>, D::Error> {
        let value = |saved| match saved {
            SavedValue::Unknown => None,
            SavedValue::Bool(x) => Some(Value::Bool(x)),
            SavedValue::Int(x) => Some(Value::Int(x)),
            SavedValue::Float(x) => Some(Value::Float(x)),
            SavedValue::Time(x) => Some(Value::Time(x)),
            SavedValue::Duration(x) => Some(Value::Duration(x)),
            SavedValue::String(x) => Some(Value::String(x)),
        };
        Ok(Vec::<SavedValue>::deserialize(from)?.into_iter().map(value).collect())
    }
}

/// A verdict, or none.
pub(crate) mod verdict {
    use rondel_event::Verdict;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    const ALL: [Verdict; 3] = [Verdict::Satisfied, Verdict::Violated, Verdict::Inconclusive];

    pub(crate) fn serialize<S: Serializer>(verdict: &Option<Verdict>, to: S) -> Result<S::Ok, S::Error> {
        ALL.iter().position(|known| Some(*known) == *verdict).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Verdict>, D::Error> {
        Ok(Option::<usize>::deserialize(from)?.and_then(|i| ALL.get(i).copied()))
    }
}
