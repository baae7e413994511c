//! Measurements that users can repeat: `rondel bench`.

pub mod timescales;
