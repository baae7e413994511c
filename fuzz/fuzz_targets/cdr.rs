//! Samples of DDS as a bridge hands them on. What is taken out of one is part of it, and when it is put into another it comes out again.

#![no_main]

use std::sync::{Arc, Mutex};

use libfuzzer_sys::fuzz_target;
use rondel_event::TopicId;
use rondel_net::adapter::{PublishError, Publisher, Receiver as _, Sample};
use rondel_net::cdr_string::{Unwrapping, Wrapping};

type Kept = Arc<Mutex<Vec<Vec<u8>>>>;

/// Keeps what it is given.
struct Keep(Kept);

impl Publisher for Keep {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.0.lock().unwrap().push(payload.to_vec());
        Ok(())
    }
}

fn strings(payload: &[u8]) -> Vec<Vec<u8>> {
    let kept = Kept::default();
    let keep = Arc::clone(&kept);
    let receiver = move |_: TopicId, samples: &[Sample<'_>]| {
        keep.lock().unwrap().extend(samples.iter().map(|sample| sample.payload.to_vec()));
    };
    let sample = Sample::new(payload, None, None);
    // By itself, and among others.
    let unwrapping = Unwrapping::new(Arc::new(receiver), "t");
    unwrapping.receive(TopicId(0), &[sample]);
    unwrapping.receive(TopicId(0), &[sample, sample]);
    let kept = kept.lock().unwrap().clone();
    assert!(kept.is_empty() || kept.len() == 3 && kept.iter().all(|text| *text == kept[0]));
    kept.into_iter().take(1).collect()
}

fuzz_target!(|payload: &[u8]| {
    for text in strings(payload) {
        assert!(text.is_empty() || payload.windows(text.len()).any(|part| part == text));
        let kept = Kept::default();
        let wrapped = Wrapping::new(Box::new(Keep(Arc::clone(&kept)))).publish(&text);
        assert_eq!(wrapped.is_err(), text.contains(&0));
        let samples = kept.lock().unwrap();
        assert!(samples.iter().all(|sample| strings(sample) == [text.clone()]));
    }
});
