//! How large a pattern is, counted before anything is made of it.

use std::ops::RangeInclusive;

use regex_syntax::ast::{
    Ast, ClassBracketed, ClassSet, ClassSetItem, Flag, Flags, GroupKind, RepetitionKind, RepetitionRange, Span,
};

use super::work::{MOST_POSITIONS, TooLarge, Work};

/// Says which part of a pattern is too large.
pub(super) fn check(pattern: &str, ast: &Ast) -> Result<(), String> {
    match positions(ast) > MOST_POSITIONS {
        true => {
            let (part, positions) = large_part(ast);
            Err(too_large(pattern, part, positions))
        }
        false => Ok(()),
    }
}

/// Says what to do about a pattern whose automaton has too many states.
#[cold]
pub(super) fn too_many_states(pattern: &str, ast: &Ast) -> String {
    match longest_repetition(ast) {
        Some((part, positions)) => too_large(pattern, part, positions),
        None => {
            let (part, positions) = (quoted(pattern, ast.span()), positions(ast));
            format!(
                "its automaton is too large: {part:?} is {positions} characters long; give its alternatives as stops, \
                 or as patterns of their own: those without meta characters cost what stops cost"
            )
        }
    }
}

fn too_large(pattern: &str, part: &Span, positions: usize) -> String {
    let part = quoted(pattern, part);
    format!(
        "its automaton is too large: {part:?} alone is {positions} characters long, written out; repeat less often, or \
         without a limit, as in [a-z]+, with max_held"
    )
}

fn quoted(pattern: &str, part: &Span) -> String {
    let part = &pattern[part.start.offset..part.end.offset];
    if part.len() > 60 { part.chars().take(40).chain(['…']).collect() } else { part.into() }
}

/// How many characters and classes a pattern has, repetitions written out.
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

/// The smallest part that is too large alone.
fn large_part(ast: &Ast) -> (&Span, usize) {
    match children(ast).find(|child| positions(child) > MOST_POSITIONS) {
        Some(child) => large_part(child),
        None => (ast.span(), positions(ast)),
    }
}

/// The part with a bounded repetition that is the longest, written out.
fn longest_repetition(ast: &Ast) -> Option<(&Span, usize)> {
    let bounded = matches!(ast, Ast::Repetition(repetition) if matches!(repetition.op.kind, RepetitionKind::Range(_)));
    let own = bounded.then(|| (ast.span(), positions(ast)));
    children(ast).filter_map(longest_repetition).chain(own).max_by_key(|(_, positions)| *positions)
}

/// Refuses classes that take long to make: under `(?i)` each of their code points is folded, and each item of a class
/// is compared with all before.
pub(super) fn check_classes(ast: &Ast, work: &mut Work) -> Result<(), String> {
    work.spend(class_work(ast, &mut false))
        .map_err(|TooLarge| "its classes are too large; write fewer characters, or no range of many under (?i)".into())
}

/// How many steps the classes take. `folds` says whether `(?i)` is on, and is changed by what turns it on or off.
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

/// A class: what it takes to make, and about how many code points it has.
struct Class {
    work: usize,
    width: usize,
    /// Whether it is folded already where it is part of another.
    folded: bool,
}

const ALL: usize = char::MAX as usize;

/// Ideographs and what is between them: a range of those is not folded one by one.
const WITHOUT_CASE: RangeInclusive<char> = '\u{2E80}'..='\u{A4CF}';

/// What a class takes to make, however small it is; and a letter under `(?i)`.
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
