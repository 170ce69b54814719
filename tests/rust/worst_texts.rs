//! Texts for which the search for loops has the most work, because much of them is repeated at many distances.

type Text = fn(usize) -> String;

/// The name of each text, and the function that makes a text of about `length` characters.
pub const NAMED: [(&str, Text); 9] = [
    ("one character", |length| "a".repeat(length)),
    ("abab", |length| "ab".repeat(length / 2)),
    ("Fibonacci word", fibonacci),
    ("Thue-Morse word", thue_morse),
    ("rows of a and one b, 50", |length| rows(length, |_| 50)),
    ("rows of a and one b, 700", |length| rows(length, |_| 700)),
    ("rows of a and one b, longer and longer", |length| rows(length, |row| row)),
    ("rows of a and one b, ruler", |length| rows(length, |row| 40 << row.trailing_zeros().min(5))),
    ("Fibonacci word, Chinese", |length| fibonacci(length).replace('a', "日").replace('b', "本")),
];

fn fibonacci(length: usize) -> String {
    let (mut word, mut shorter) = (String::from("a"), String::from("b"));
    while word.len() < length {
        (word, shorter) = (format!("{word}{shorter}"), word);
    }
    word[..length].into()
}

fn thue_morse(length: usize) -> String {
    (0..length).map(|at| if at.count_ones() % 2 == 0 { 'a' } else { 'b' }).collect()
}

fn rows(length: usize, row: fn(usize) -> usize) -> String {
    let mut text = String::new();
    for number in 1.. {
        text += &"a".repeat(row(number));
        text.push('b');
        if text.len() >= length {
            break;
        }
    }
    text
}
