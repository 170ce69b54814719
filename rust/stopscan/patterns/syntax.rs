//! Parses a pattern: the syntax of the regex crate with ASCII classes. Refuses what a stream cannot be scanned for.

use std::ops::RangeInclusive;

use super::work::{MAX_POSITIONS, TooLarge, Work};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Ast, ClassAscii, ClassAsciiKind, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, Flag, Flags,
    FlagsItem, FlagsItemKind, Group, GroupKind, RepetitionKind, RepetitionRange, Span,
};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};

const UNSUPPORTED_LOOK: &str =
    "look-around is not supported, except ^, $, \\A, \\z, \\b and \\B; use \\b for a word boundary";

/// How deep groups and repetitions may nest. The functions of this file recurse as deep.
const NESTING: u32 = 50;

/// A pattern that was parsed.
#[derive(Debug)]
pub(super) struct Parsed {
    ast: Ast,
    pub(super) hir: Hir,
    /// How many characters and classes it has with its repetitions written out.
    pub(super) positions: usize,
}

/// Parses a pattern. Its classes spend from `class_work`. An error says what is wrong with the pattern.
pub(super) fn parse(pattern: &str, class_work: &mut Work) -> Result<Parsed, String> {
    let mut parser = ParserBuilder::new().nest_limit(NESTING).build();
    let mut ast = parser.parse(pattern).map_err(|error| explained(&error.kind().to_string()))?;
    check_size(pattern, &ast)?;
    make_ascii(&mut ast)?;
    check_classes(&ast, class_work)?;
    let hir = TranslatorBuilder::new().build().translate(pattern, &ast);
    let hir = hir.map_err(|error| explained(&error.kind().to_string()))?;
    match least_length(&hir) {
        None => Err("it can never match".into()),
        Some(0) => Err("it can match the empty string; make it need a character: write a+ instead of a*".into()),
        Some(_) => {
            check_looks(&hir, true)?;
            Ok(Parsed { positions: positions(&ast), ast, hir })
        }
    }
}

/// The least length of a match, or `None` if nothing matches. Looks have no length. `Hir::properties` does not tell: it
/// knows no least length of an alternation with a branch that never matches.
fn least_length(hir: &Hir) -> Option<usize> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some(0),
        HirKind::Literal(literal) => Some(literal.0.len()),
        HirKind::Class(class) => (!class.is_empty()).then_some(1),
        HirKind::Capture(capture) => least_length(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min == 0 => Some(0),
        HirKind::Repetition(repetition) => least_length(&repetition.sub),
        HirKind::Alternation(branches) => branches.iter().filter_map(least_length).min(),
        HirKind::Concat(parts) => parts.iter().try_fold(0, |length, part| Some(length + least_length(part)?)),
    }
}

/// The error of the parser, and what to write instead.
fn explained(problem: &str) -> String {
    if problem.starts_with("look-around") {
        return format!("{problem}; use \\b, (?m)^ or (?m)$, or make the text around it a part of the pattern");
    }
    if problem.starts_with("backreferences") {
        return format!("{problem}; write the alternatives out, such as (aa|bb)");
    }
    if problem.starts_with("repetition") {
        return format!("{problem}; write \\{{ for a brace, and \\* for a star");
    }
    problem.into()
}

/// Makes `\d`, `\s`, `\w` and `\b` ASCII. The automata of the Unicode classes are a hundred times as large, and their
/// tables would be half of the library.
fn make_ascii(ast: &mut Ast) -> Result<(), String> {
    match ast {
        Ast::ClassPerl(class) => *ast = Ast::class_bracketed(ascii(class)),
        Ast::ClassBracketed(class) => make_set_ascii(&mut class.kind)?,
        Ast::ClassUnicode(_) => return Err(no_properties()),
        Ast::Assertion(assertion) => {
            let item = |kind| FlagsItem { span: assertion.span, kind };
            let items = vec![item(FlagsItemKind::Negation), item(FlagsItemKind::Flag(Flag::Unicode))];
            let kind = GroupKind::NonCapturing(Flags { span: assertion.span, items });
            let span = assertion.span;
            *ast = Ast::group(Group { span, kind, ast: Box::new(ast.clone()) });
        }
        Ast::Repetition(repetition) => make_ascii(&mut repetition.ast)?,
        Ast::Group(group) => {
            check_flags(group.flags())?;
            make_ascii(&mut group.ast)?;
        }
        Ast::Flags(flags) => check_flags(Some(&flags.flags))?,
        Ast::Alternation(alternation) => alternation.asts.iter_mut().try_for_each(make_ascii)?,
        Ast::Concat(concat) => concat.asts.iter_mut().try_for_each(make_ascii)?,
        Ast::Empty(_) | Ast::Literal(_) | Ast::Dot(_) => {}
    }
    Ok(())
}

/// Refuses the flag `R`. It makes a carriage return the end of a line, so `$` and `.` would have to look ahead.
fn check_flags(flags: Option<&Flags>) -> Result<(), String> {
    match flags.is_some_and(|flags| flags.flag_state(Flag::CRLF) == Some(true)) {
        true => Err("(?R) is not supported; write \\r?\\n".into()),
        false => Ok(()),
    }
}

fn make_set_ascii(set: &mut ClassSet) -> Result<(), String> {
    match set {
        ClassSet::Item(item) => make_item_ascii(item),
        ClassSet::BinaryOp(operation) => {
            make_set_ascii(&mut operation.lhs)?;
            make_set_ascii(&mut operation.rhs)
        }
    }
}

fn make_item_ascii(item: &mut ClassSetItem) -> Result<(), String> {
    match item {
        ClassSetItem::Perl(class) => *item = ClassSetItem::Bracketed(Box::new(ascii(class))),
        ClassSetItem::Unicode(_) => return Err(no_properties()),
        ClassSetItem::Bracketed(class) => make_set_ascii(&mut class.kind)?,
        ClassSetItem::Union(union) => {
            // Under `(?i)` each pair of brackets is folded by itself, before it is negated. A negated class such as `\S`
            // is expensive to fold, so if there is one, every item gets its own brackets.
            let is_wide = |item: &ClassSetItem| matches!(item, ClassSetItem::Perl(class) if class.negated);
            let wide = union.items.iter().any(is_wide);
            union.items.iter_mut().try_for_each(make_item_ascii)?;
            for item in union.items.iter_mut().filter(|item| wide && !matches!(item, ClassSetItem::Bracketed(_))) {
                let (span, kind) = (*item.span(), ClassSet::Item(item.clone()));
                *item = ClassSetItem::Bracketed(Box::new(ClassBracketed { span, negated: false, kind }));
            }
        }
        _ => {}
    }
    Ok(())
}

fn ascii(class: &ClassPerl) -> ClassBracketed {
    let kind = match class.kind {
        ClassPerlKind::Digit => ClassAsciiKind::Digit,
        ClassPerlKind::Space => ClassAsciiKind::Space,
        ClassPerlKind::Word => ClassAsciiKind::Word,
    };
    let set = ClassSet::Item(ClassSetItem::Ascii(ClassAscii { span: class.span, kind, negated: false }));
    ClassBracketed { span: class.span, negated: class.negated, kind: set }
}

#[cold]
fn no_properties() -> String {
    "\\p{…} is not supported; write the ranges, such as [а-яё]".into()
}

/// Refuses looks that a stream cannot decide. `$` and `\z` are supported only if nothing follows, which `last` says.
fn check_looks(hir: &Hir, last: bool) -> Result<(), String> {
    match hir.kind() {
        HirKind::Look(Look::End) if !last => {
            Err("$ and \\z are supported only at the end of a pattern or branch; (?m)$ is the end of a line".into())
        }
        HirKind::Look(
            Look::Start | Look::End | Look::StartLF | Look::EndLF | Look::WordAscii | Look::WordAsciiNegate,
        ) => Ok(()),
        HirKind::Look(_) => Err(UNSUPPORTED_LOOK.into()),
        HirKind::Capture(capture) => check_looks(&capture.sub, last),
        HirKind::Repetition(repetition) => check_looks(&repetition.sub, last && repetition.max == Some(1)),
        HirKind::Alternation(branches) => branches.iter().try_for_each(|branch| check_looks(branch, last)),
        HirKind::Concat(parts) => parts.iter().enumerate().try_for_each(|(at, part)| {
            let no_width = |part: &Hir| part.properties().maximum_len() == Some(0);
            check_looks(part, last && parts[at + 1..].iter().all(no_width))
        }),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => Ok(()),
    }
}

/// Refuses a pattern with too many characters and classes, and names the part that has them.
pub(super) fn check_size(pattern: &str, ast: &Ast) -> Result<(), String> {
    match positions(ast) > MAX_POSITIONS {
        true => {
            let (part, positions) = large_part(ast);
            Err(too_large(pattern, part, positions))
        }
        false => Ok(()),
    }
}

impl Parsed {
    /// Says what to do about `pattern`, from which this was parsed, if its automaton is too large.
    #[cold]
    pub(super) fn too_many_states(&self, pattern: &str) -> String {
        match longest_repetition(&self.ast) {
            Some((part, positions)) => too_large(pattern, part, positions),
            None => {
                let (part, positions) = (quoted(pattern, self.ast.span()), self.positions);
                format!(
                    "its automaton is too large: {part:?} is {positions} characters long; pass its alternatives as \
                     stops or as separate patterns: a pattern without meta characters costs as little as a stop"
                )
            }
        }
    }
}

fn too_large(pattern: &str, part: &Span, positions: usize) -> String {
    let part = quoted(pattern, part);
    format!(
        "its automaton is too large: {part:?} alone is {positions} characters long when its repetitions are written \
         out; lower the counts, or use a repetition without a limit, such as [a-z]+, with max_held"
    )
}

fn quoted(pattern: &str, part: &Span) -> String {
    let part = &pattern[part.start.offset..part.end.offset];
    if part.len() > 60 { part.chars().take(40).chain(['…']).collect() } else { part.into() }
}

/// How many characters and classes a pattern has with its repetitions written out.
pub(super) fn positions(ast: &Ast) -> usize {
    match ast {
        Ast::Empty(_) | Ast::Flags(_) => 0,
        Ast::Repetition(repetition) => {
            let times = match &repetition.op.kind {
                RepetitionKind::Range(range) => most(range),
                _ => 1,
            };
            positions(&repetition.ast).max(1).saturating_mul(times.max(1))
        }
        Ast::Literal(_) | Ast::Dot(_) | Ast::Assertion(_) => 1,
        Ast::ClassUnicode(_) | Ast::ClassPerl(_) | Ast::ClassBracketed(_) => 1,
        _ => children(ast).map(|child| positions(child).max(1)).fold(0, usize::saturating_add),
    }
}

fn most(range: &RepetitionRange) -> usize {
    match *range {
        RepetitionRange::Exactly(count) | RepetitionRange::AtLeast(count) | RepetitionRange::Bounded(_, count) => {
            count as usize
        }
    }
}

fn children(ast: &Ast) -> impl Iterator<Item = &Ast> {
    let (one, many): (Option<&Ast>, &[Ast]) = match ast {
        Ast::Repetition(repetition) => (Some(&repetition.ast), &[]),
        Ast::Group(group) => (Some(&group.ast), &[]),
        Ast::Alternation(alternation) => (None, &alternation.asts),
        Ast::Concat(concat) => (None, &concat.asts),
        _ => (None, &[]),
    };
    one.into_iter().chain(many)
}

/// The smallest part that is too large by itself.
fn large_part(ast: &Ast) -> (&Span, usize) {
    match children(ast).find(|child| positions(child) > MAX_POSITIONS) {
        Some(child) => large_part(child),
        None => (ast.span(), positions(ast)),
    }
}

/// The bounded repetition that is the longest when it is written out.
fn longest_repetition(ast: &Ast) -> Option<(&Span, usize)> {
    let bounded = matches!(ast, Ast::Repetition(repetition) if matches!(repetition.op.kind, RepetitionKind::Range(_)));
    let own = bounded.then(|| (ast.span(), positions(ast)));
    children(ast).filter_map(longest_repetition).chain(own).max_by_key(|(_, positions)| *positions)
}

/// Refuses classes that take long to make. Under `(?i)` each of their code points is folded, and each item of a class is
/// compared with all items before it.
pub(super) fn check_classes(ast: &Ast, work: &mut Work) -> Result<(), String> {
    work.spend(class_work(ast, &mut false))
        .map_err(|TooLarge| "its classes are too large; use fewer characters, or no large range under (?i)".into())
}

/// How many steps the classes take. `folds` says whether `(?i)` is on. Flags in the pattern change it.
fn class_work(ast: &Ast, folds: &mut bool) -> usize {
    match ast {
        Ast::Flags(flags) => {
            set_fold(&flags.flags, folds);
            0
        }
        Ast::Group(group) => {
            let mut inner = *folds;
            if let GroupKind::NonCapturing(flags) = &group.kind {
                set_fold(flags, &mut inner);
            }
            class_work(&group.ast, &mut inner)
        }
        Ast::ClassBracketed(class) => CLASS + bracketed(class, *folds).work,
        Ast::Literal(_) if *folds => LETTER,
        _ => children(ast).map(|child| class_work(child, folds)).fold(0, usize::saturating_add),
    }
}

fn set_fold(flags: &Flags, folds: &mut bool) {
    if let Some(on) = flags.flag_state(Flag::CaseInsensitive) {
        *folds = on;
    }
}

/// The steps that a class takes, and about how many code points it has.
struct Class {
    work: usize,
    width: usize,
    /// Whether it is folded before it becomes a part of another class.
    folded: bool,
}

const ALL: usize = char::MAX as usize;

/// Ideographs and the blocks between them. A range of those is not folded code point by code point.
const WITHOUT_CASE: RangeInclusive<char> = '\u{2E80}'..='\u{A4CF}';

/// The steps of the smallest class, and of a letter under `(?i)`.
const CLASS: usize = 200;
const LETTER: usize = 100;

fn bracketed(class: &ClassBracketed, folds: bool) -> Class {
    let inner = set(&class.kind, folds);
    let fold = if folds && !inner.folded { inner.width } else { 0 };
    Class { work: inner.work + fold, width: if class.negated { ALL } else { inner.width }, folded: true }
}

fn set(kind: &ClassSet, folds: bool) -> Class {
    match kind {
        ClassSet::Item(one) => item(one, folds),
        ClassSet::BinaryOp(operation) => {
            let (one, other) = (set(&operation.lhs, folds), set(&operation.rhs, folds));
            let fold = if folds { one.width + other.width } else { 0 };
            Class { work: one.work + other.work + fold, width: one.width.max(other.width), folded: false }
        }
    }
}

fn item(item: &ClassSetItem, folds: bool) -> Class {
    let leaf = |width| Class { work: 1, width, folded: false };
    match item {
        ClassSetItem::Empty(_) => Class { work: 0, width: 0, folded: true },
        ClassSetItem::Literal(_) => leaf(1),
        ClassSetItem::Range(range) => {
            match WITHOUT_CASE.contains(&range.start.c) && WITHOUT_CASE.contains(&range.end.c) {
                true => leaf(1),
                false => leaf((range.end.c as usize).saturating_sub(range.start.c as usize) + 1),
            }
        }
        ClassSetItem::Ascii(class) => leaf(if class.negated { ALL } else { 128 }),
        ClassSetItem::Unicode(_) | ClassSetItem::Perl(_) => leaf(ALL), // refused before, or made ASCII
        ClassSetItem::Bracketed(class) => bracketed(class, folds),
        ClassSetItem::Union(union) => {
            let items: Vec<Class> = union.items.iter().map(|one| self::item(one, folds)).collect();
            Class {
                work: items.iter().map(|class| class.work).sum::<usize>() + items.len() * items.len(),
                width: items.iter().map(|class| class.width).fold(0, usize::saturating_add).min(ALL),
                folded: items.iter().all(|class| class.folded),
            }
        }
    }
}
