//! Texts that repeat themselves a lot but are not loops. Each text is like a whole answer of a model.

/// All texts, with their names.
pub fn all() -> Vec<(&'static str, String)> {
    vec![
        ("Markdown table, 60 different rows", table(|row| format!("| {row} | {} | {} |", name(row), row * 37 % 101))),
        ("Markdown table, 60 rows of n/a", table(|_| "| n/a | n/a | n/a |".into())),
        ("Markdown table, 60 numbered rows of n/a", table(|row| format!("| {row} | n/a | n/a |"))),
        (
            "Markdown table with wide rules",
            format!("| a | b |\n|{}|{}|\n| 1 | 2 |\n", "-".repeat(120), "-".repeat(120)),
        ),
        ("array of 100 zeros", format!("[{}]", ["0"; 100].join(", "))),
        ("array of 60 zeros", format!("[{}]", ["0"; 60].join(", "))),
        ("identity matrix, 12 by 12", identity(12)),
        ("identity matrix, 100 by 100", identity(100)),
        ("matrix of zeros, 8 by 8", ["[0, 0, 0, 0, 0, 0, 0, 0]"; 8].join(",\n")),
        ("matrix of zeros, 16 by 16", [format!("[{}]", ["0"; 16].join(", ")).as_str(); 16].join(",\n")),
        ("40 equal JSON records", ["{\"status\": \"ok\", \"retries\": 0}"; 40].join(",\n")),
        (
            "40 JSON records with an id",
            lines(40, |row| format!("{{\"id\": {row}, \"status\": \"ok\", \"retries\": 0}},")),
        ),
        ("40 equal CSV lines", ["0.0,0.0,0.0,0.0"; 40].join("\n")),
        ("40 CSV lines with a time", lines(40, |row| format!("2026-11-22T13:00:{row:02},0.0,0.0,0.0"))),
        ("log, 40 lines with a time", lines(40, |row| format!("13:00:{row:02} INFO worker-3: heartbeat ok"))),
        ("log, 40 lines without a time", lines(40, |_| "INFO worker-3: heartbeat ok".into())),
        ("tests, 40 lines", lines(40, |row| format!("test case_{row:03} ... ok"))),
        ("tests, 300 dots", ".".repeat(300)),
        ("tests, 200 dots", ".".repeat(200)),
        ("rule of 80 characters", "=".repeat(80) + "\nSummary\n" + &"=".repeat(80)),
        ("ASCII box, 100 wide and 8 high", boxed(100, 8)),
        ("ASCII box, 40 wide and 20 high", boxed(40, 20)),
        ("hex dump of zeros", lines(40, |row| format!("{:08x}  {}", row * 16, ["00"; 16].join(" ")))),
        ("Base64 of zeros, 200 bytes", "A".repeat(268)),
        ("assembly, 30 nop", lines(30, |_| "    nop".into())),
        (
            "chain of thought, 30 numbered steps",
            lines(30, |row| format!("{row}. Check whether {} divides 9973: no.", row + 1)),
        ),
        (
            "chain of thought, 12 times \"Wait, let me check that again.\"",
            lines(12, |_| "Wait, let me check that again.".into()),
        ),
        (
            "chain of thought, the same step of 30 characters 8 times",
            lines(8, |_| "So the answer is the same: 42.".into()),
        ),
        ("checklist, 20 empty boxes", lines(20, |_| "- [ ] ".into())),
        ("form with lines to fill in", lines(6, |row| format!("{}: {}", name(row), "_".repeat(40)))),
        ("99 Bottles", bottles()),
        ("The Twelve Days of Christmas", days()),
        ("chorus of 204 characters, twice in a row", CHORUS.repeat(2)),
        ("chorus of 204 characters, 4 times in a row", CHORUS.repeat(4)),
        ("song, 12 times \"na na na na, hey hey hey\"", lines(12, |_| "na na na na, hey hey hey".into())),
        ("laughter, 60 times \"ha\"", "ha".repeat(60)),
        ("laughter, 150 times \"ha\"", "ha".repeat(150)),
        ("poem of 8 lines that begin alike", lines(8, |row| format!("I remember the {} of that year,", name(row)))),
        ("\"I will not talk in class.\" 20 times", lines(20, |_| "I will not talk in class.".into())),
        ("\"I will not talk in class.\" 8 times", lines(8, |_| "I will not talk in class.".into())),
    ]
}

const CHORUS: &str = "Oh, carry me over the river tonight,\nThe lanterns are low and the water is bright,\n\
    Oh, carry me over and leave me to stay,\nFor all that I wanted is far, far away.\nOh, river, oh, river, oh, river of day!\n\n";

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(|row| line(row) + "\n").collect()
}

fn name(row: usize) -> &'static str {
    ["Anna", "Bruno", "Chidi", "Dora", "Emil", "Fatima", "Goro", "Hana", "Ivo", "Jun", "Kofi"][row * 7 % 11]
}

fn table(row: impl Fn(usize) -> String) -> String {
    "| id | name | value |\n| --- | --- | --- |\n".to_string() + &lines(60, row)
}

fn identity(size: usize) -> String {
    let cell = |row, column| if row == column { "1" } else { "0" };
    lines(size, |row| format!("[{}],", (0..size).map(|column| cell(row, column)).collect::<Vec<_>>().join(", ")))
}

fn boxed(width: usize, height: usize) -> String {
    let edge = format!("+{}+\n", "-".repeat(width));
    edge.clone() + &lines(height, |_| format!("|{}|", " ".repeat(width))) + &edge
}

fn bottles() -> String {
    let verse = |count: usize| {
        format!(
            "{count} bottles of beer on the wall, {count} bottles of beer.\n\
             Take one down and pass it around, {} bottles of beer on the wall.\n",
            count - 1
        )
    };
    lines(99, |row| verse(99 - row))
}

fn days() -> String {
    let gifts = [
        "a partridge in a pear tree.",
        "two turtle doves,",
        "three French hens,",
        "four calling birds,",
        "five gold rings,",
        "six geese a-laying,",
        "seven swans a-swimming,",
        "eight maids a-milking,",
        "nine ladies dancing,",
        "ten lords a-leaping,",
        "eleven pipers piping,",
        "twelve drummers drumming,",
    ];
    lines(12, |day| {
        let given: Vec<_> = gifts[..=day].iter().rev().copied().collect();
        format!("On day {} of Christmas my true love gave to me\n{}\n", day + 1, given.join("\n"))
    })
}
