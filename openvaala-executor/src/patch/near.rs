//! What a file has instead of the lines that a patch expects.

use std::collections::HashMap;

use super::lines::Line;
use super::seek::Pass;

/// How many lines of the file are shown at most.
const SHOWN: usize = 12;

/// How many bytes of a line are shown and compared.
const LONGEST: usize = 160;

/// How many lines of the file are looked at.
const LOOKED_AT: usize = 500_000;

/// How many lines are compared letter by letter, if none is equal.
const COMPARED: usize = 20_000;

/// How many places of one line in the patch are counted.
const PLACES: usize = 8;

/// What to say behind "it has no such lines": the nearest lines, with their numbers.
pub(super) fn describe(lines: &[Line<'_>], wanted: &[&str]) -> String {
    if lines.is_empty() {
        return "; the file is empty".to_owned();
    }
    let Some(start) = nearest(lines, wanted) else {
        return "; no line is like them, so read the file again".to_owned();
    };
    let there = &lines[start..lines.len().min(start + wanted.len())];
    let same = |(line, wanted): &(&Line<'_>, &&str)| Pass::Plain.is_same(line.text, wanted);
    let differs = there.iter().zip(wanted).position(|pair| !same(&pair));
    let first = differs.unwrap_or(there.len());
    let mut text = "; the nearest lines are\n".to_owned();
    let skipped = first.saturating_sub(SHOWN / 2);
    for (index, line) in there.iter().enumerate().skip(skipped).take(SHOWN) {
        let is_same = wanted
            .get(index)
            .is_some_and(|w| Pass::Plain.is_same(line.text, w));
        let mark = if is_same { ' ' } else { '>' };
        let line_text = cut(&String::from_utf8_lossy(line.text));
        text += &format!("{mark}{:>5} | {line_text}\n", start + index + 1);
    }
    text + &difference(start + first, there.get(first), wanted.get(first).copied())
}

fn difference(index: usize, there: Option<&Line<'_>>, wanted: Option<&str>) -> String {
    match (there, wanted) {
        (Some(line), Some(wanted)) => format!(
            "line {} is {}, the patch expects {}",
            index + 1,
            quote(&String::from_utf8_lossy(line.text)),
            quote(wanted)
        ),
        (_, Some(wanted)) => format!("there the file ends; the patch expects {}", quote(wanted)),
        _ => "they differ in their order".to_owned(),
    }
}

/// A line in quotes, shortened.
pub(super) fn quote(line: &str) -> String {
    format!("{:?}", cut(line))
}

fn cut(line: &str) -> String {
    if line.len() <= LONGEST {
        return line.to_owned();
    }
    format!("{}…", &line[..line.floor_char_boundary(LONGEST)])
}

/// The first line of the region that has most of the wanted lines, each in its place.
fn nearest(lines: &[Line<'_>], wanted: &[&str]) -> Option<usize> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, wanted) in wanted.iter().enumerate() {
        let places = places.entry(wanted.trim()).or_default();
        if !wanted.trim().is_empty() && places.len() < PLACES {
            places.push(index);
        }
    }
    // Votes for a start are kept by start plus the length of the wanted lines, to stay above 0.
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (index, line) in lines.iter().enumerate().take(LOOKED_AT) {
        let text = String::from_utf8_lossy(line.text);
        let text = text.trim();
        for place in places.get(text).into_iter().flatten() {
            // A bracket alone says little about a place.
            *votes.entry(index + wanted.len() - place).or_default() += text.len().clamp(1, 20);
        }
    }
    let best = votes
        .into_iter()
        .max_by_key(|(start, votes)| (*votes, usize::MAX - start));
    match best {
        Some((start, _)) => Some(start.saturating_sub(wanted.len())),
        None => most_alike(lines, wanted),
    }
}

/// Where the longest of the wanted lines has its likeness.
fn most_alike(lines: &[Line<'_>], wanted: &[&str]) -> Option<usize> {
    let (place, longest) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.trim().len())?;
    let grams = pairs(longest.trim());
    let alike = |line: &Line<'_>| likeness(&grams, String::from_utf8_lossy(line.text).trim());
    let scores = lines.iter().take(COMPARED).map(alike).enumerate();
    let (index, score) = scores.max_by_key(|(index, score)| (*score, usize::MAX - index))?;
    (score >= 40).then(|| index.saturating_sub(place))
}

/// Percent of letter pairs in common.
fn likeness(grams: &HashMap<[char; 2], usize>, line: &str) -> usize {
    let other = pairs(line);
    let total = grams.values().sum::<usize>() + other.values().sum::<usize>();
    let in_common =
        |(pair, count): (&[char; 2], &usize)| grams.get(pair).map_or(0, |here| *here.min(count));
    let common: usize = other.iter().map(in_common).sum();
    (200 * common).checked_div(total).unwrap_or(0)
}

fn pairs(line: &str) -> HashMap<[char; 2], usize> {
    let mut pairs = HashMap::new();
    let chars = || line.chars().take(LONGEST);
    for (a, b) in chars().zip(chars().skip(1)) {
        *pairs.entry([a, b]).or_default() += 1;
    }
    pairs
}
