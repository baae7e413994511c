//! Tables in Markdown, and their statistics.

use std::fmt::Write as _;

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    title: String,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    /// Returns an empty table.
    pub fn new(title: impl Into<String>, heads: &[&str]) -> Table {
        let heads = heads.iter().map(|&h| h.to_owned()).collect();
        Table { title: title.into(), heads, rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a row: as many cells as there are heads.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Adds a line below the table.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Returns Markdown: title, table, lines below it.
    pub fn markdown(&self) -> String {
        let mut out = format!("### {}\n\n", self.title);
        let line = |out: &mut String, cells: &[String]| {
            // Writing to a string does not fail.
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        };
        line(&mut out, &self.heads);
        let rules: Vec<String> =
            (0..self.heads.len()).map(|i| if i == 0 { "---" } else { "---:" }.to_owned()).collect();
        line(&mut out, &rules);
        self.rows.iter().for_each(|row| line(&mut out, row));
        for note in &self.notes {
            let _ = write!(out, "\n{note}\n");
        }
        out.push('\n');
        out
    }
}

/// Groups items by a key, in the order of the first item of each group.
pub fn groups<'a, T, K: PartialEq>(
    items: impl IntoIterator<Item = &'a T>,
    key_of: impl Fn(&'a T) -> K,
) -> Vec<(K, Vec<&'a T>)> {
    let mut groups: Vec<(K, Vec<&'a T>)> = Vec::new();
    for item in items {
        let key = key_of(item);
        match groups.iter().position(|(other, _)| *other == key) {
            Some(place) => groups[place].1.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

/// Returns the median. NaN without values.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns a quantile, by linear interpolation between neighbours. NaN without values.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = part * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// Returns the mean. NaN without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation. NaN without values.
pub fn deviation(values: &[f64]) -> f64 {
    let mean_of_all = mean(values);
    mean(&values.iter().map(|value| (value - mean_of_all).powi(2)).collect::<Vec<_>>()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown() {
        let mut table = Table::new("T", &["a", "b"]);
        table.row(vec!["x".into(), "1".into()]);
        table.note("n");
        assert_eq!(table.markdown(), "### T\n\n| a | b |\n| --- | ---: |\n| x | 1 |\n\nn\n\n");
    }

    #[test]
    fn groups_are_in_the_order_of_their_first_items() {
        assert_eq!(groups(&[3, 1, 5, 2], |n| n % 2), [(1, vec![&3, &1, &5]), (0, vec![&2])]);
        assert!(groups(&[] as &[u8], |n| *n).is_empty());
    }

    #[test]
    fn quantiles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(quantile(&[0.0, 10.0], 0.99), 9.9);
        assert!(median(&[]).is_nan());
        assert_eq!(mean(&[1.0, 3.0]), 2.0);
        assert_eq!(deviation(&[1.0, 3.0]), 1.0);
    }
}
