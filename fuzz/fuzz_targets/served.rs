#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| queuekeeper_fuzz::served::check(data));
