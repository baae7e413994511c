//! Values as JSON text, as the decoder of rows of tables reads them: a number may be `NaN`.

/// Writes an integer.
#[inline]
pub fn write_int(number: i64, out: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    let _ = serde_json::to_writer(&mut *out, &number);
}

/// Writes a number so that reading it returns the same.
pub fn write_float(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        let _ = serde_json::to_writer(&mut *out, &number);
    } else if number.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        // The nearest text that is read as infinity.
        out.extend_from_slice(if number > 0.0 { b"1e999" } else { b"-1e999" });
    }
}

/// Writes a text in quotes.
pub fn write_text(text: &str, out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(&mut *out, text);
}
