//! Bytes to text while they come.

/// Turns bytes into text as they come; a character cut between two pieces waits for its rest.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    rest: Vec<u8>,
}

impl Decoder {
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.rest.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.rest.len());
        let mut used = 0;
        loop {
            match std::str::from_utf8(&self.rest[used..]) {
                Ok(good) => {
                    text.push_str(good);
                    self.rest.clear();
                    return text;
                }
                Err(error) => {
                    let good = used + error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&self.rest[used..good]));
                    let Some(bad) = error.error_len() else {
                        self.rest.drain(..good);
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    used = good + bad;
                }
            }
        }
    }

    pub(super) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.rest)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_is_the_same_however_its_bytes_are_cut(
            bytes in proptest::collection::vec(prop_oneof![Just(0xE4u8), Just(0xBD), Just(0xA0), Just(0xF0), any::<u8>()], 0..64),
            cuts in proptest::collection::vec(0usize..64, 0..8),
        ) {
            let whole = String::from_utf8_lossy(&bytes).into_owned();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= bytes.len()).collect();
            cuts.push(0);
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut decoder = Decoder::default();
            let mut text = String::new();
            for pair in cuts.windows(2) {
                text.push_str(&decoder.push(&bytes[pair[0]..pair[1]]));
            }
            text.push_str(&decoder.finish());
            prop_assert_eq!(text, whole);
        }
    }

    #[test]
    fn a_character_waits_for_its_rest() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(&[0xE4, 0xBD]), "");
        assert_eq!(decoder.push(&[0xA0, b'!']), "你!");
    }
}
