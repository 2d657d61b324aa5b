//! Settings of workloads: one row gives a setting's name, kind, default and help, and its field in
//! a struct.

use pickfs_core::plan::{Setting, SettingKind, Settings};
use serde_json::Value;
use std::path::PathBuf;

/// A kind of setting, and the type of its values.
pub(crate) trait Typed {
    const KIND: SettingKind;
    type Value;
    fn read(value: &Value) -> Option<Self::Value>;
}

macro_rules! kinds {
    ($($kind:ident ($as:ident) -> $type:ty = $read:expr;)*) => {$(
        pub(crate) struct $kind;

        impl Typed for $kind {
            const KIND: SettingKind = SettingKind::$as;
            type Value = $type;

            fn read(value: &Value) -> Option<$type> {
                ($read)(value)
            }
        }
    )*};
}

kinds! {
    Text(Text) -> String = text;
    NameOrPath(NameOrPath) -> String = text;
    Path(Path) -> PathBuf = |value| text(value).map(PathBuf::from);
    Size(Size) -> u64 = Value::as_u64;
    Number(Number) -> f64 = Value::as_f64;
    Duration(Duration) -> std::time::Duration = |value: &Value| value.as_u64().map(std::time::Duration::from_nanos);
    Flag(Flag) -> bool = Value::as_bool;
    Texts(Texts) -> Vec<String> = |value| list(value, text);
    Words(Words) -> Vec<String> = |value| list(value, text);
    Counts(Counts) -> Vec<u64> = |value| list(value, Value::as_u64);
}

/// A whole number, from `LEAST` to `MOST` where they are given: `Count<1>` is one or more.
pub(crate) struct Count<const LEAST: u64 = 0, const MOST: u64 = { u64::MAX }>;

impl<const LEAST: u64, const MOST: u64> Typed for Count<LEAST, MOST> {
    const KIND: SettingKind = SettingKind::Within(LEAST, MOST);
    type Value = u64;

    fn read(value: &Value) -> Option<u64> {
        value.as_u64().filter(|count| (LEAST..=MOST).contains(count))
    }
}

/// The same as a length.
pub(crate) struct Items<const LEAST: u64 = 0, const MOST: u64 = { u64::MAX }>;

impl<const LEAST: u64, const MOST: u64> Typed for Items<LEAST, MOST> {
    const KIND: SettingKind = Count::<LEAST, MOST>::KIND;
    type Value = usize;

    fn read(value: &Value) -> Option<usize> {
        Count::<LEAST, MOST>::read(value).and_then(|count| usize::try_from(count).ok())
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(String::from)
}

fn list<T>(value: &Value, one: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array().map(|list| list.iter().filter_map(one).collect())
}

/// The value of a setting; none where it is not given.
pub(crate) fn given<K: Typed>(settings: &Settings, row: &Setting) -> Option<K::Value> {
    settings.0.get(row.name).and_then(K::read)
}

/// The value of a setting, or its default.
pub(crate) fn given_or_default<K: Typed>(settings: &Settings, row: &Setting) -> K::Value {
    let usual = || row.default_value().as_ref().and_then(K::read);
    given::<K>(settings, row).or_else(usual).expect("the default of a setting is of its kind, which a test holds")
}

/// A struct of settings from rows of `field: Kind = "default", "help";`. `ROWS` declares them to
/// plans, `of` reads them. A field without a default is an `Option`; `field["name"]` is a setting
/// that is not called like its field.
macro_rules! settings {
    ($(#[$doc:meta])* $vis:vis $name:ident {
        $($field:ident $([$key:literal])? : $kind:ty $(= $default:literal)?, $about:expr;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        $vis struct $name {
            $(pub(crate) $field: settings!(@type $kind $(, $default)?),)*
        }

        impl $name {
            pub(crate) const ROWS: &'static [pickfs_core::plan::Setting] = &[$(
                pickfs_core::plan::Setting {
                    name: settings!(@name $field $($key)?),
                    kind: <$kind as $crate::workload::settings::Typed>::KIND,
                    default: settings!(@default $($default)?),
                    about: $about,
                },
            )*];

            /// What is given, and the defaults of what is not.
            pub(crate) fn of(settings: &pickfs_core::plan::Settings) -> $name {
                let mut rows = Self::ROWS.iter();
                let mut row = || rows.next().expect("each field has a row");
                $name { $($field: settings!(@read settings, row(), $kind $(, $default)?),)* }
            }
        }
    };
    (@type $kind:ty) => { Option<<$kind as $crate::workload::settings::Typed>::Value> };
    (@type $kind:ty, $default:literal) => { <$kind as $crate::workload::settings::Typed>::Value };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $key:literal) => { $key };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
    (@read $settings:ident, $row:expr, $kind:ty) => { $crate::workload::settings::given::<$kind>($settings, $row) };
    (@read $settings:ident, $row:expr, $kind:ty, $default:literal) => {
        $crate::workload::settings::given_or_default::<$kind>($settings, $row)
    };
}

/// An enum whose values are the words of a setting.
macro_rules! choice {
    ($(#[$doc:meta])* $vis:vis $name:ident { $($(#[$what:meta])* $value:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $($(#[$what])* $value,)+
        }

        #[allow(dead_code)]
        impl $name {
            $vis const ALL: &'static [$name] = &[$($name::$value),+];
            $vis const WORDS: &'static [&'static str] = &[$($word),+];

            $vis fn word(self) -> &'static str {
                Self::WORDS[self as usize]
            }

            $vis fn named(word: &str) -> Option<$name> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
        }

        impl $crate::workload::settings::Typed for $name {
            const KIND: pickfs_core::plan::SettingKind = pickfs_core::plan::SettingKind::Choice(Self::WORDS);
            type Value = $name;

            fn read(value: &serde_json::Value) -> Option<$name> {
                value.as_str().and_then($name::named)
            }
        }
    };
}

pub(crate) use {choice, settings};

#[cfg(test)]
mod tests {
    use super::*;

    choice! { Colour { Red = "red", Blue = "blue" } }

    settings! {
        Example {
            time: Duration = "2s", "how long";
            file_size["file-size"]: Size, "bytes";
            colour: Colour = "blue", "which";
            names: Texts = r#"["a", "b"]"#, "some";
            none: Texts = "[]", "none";
            runs: Count<1, 9> = "3", "how many";
        }
    }

    #[test]
    fn a_count_has_its_range() {
        assert!(matches!(Example::ROWS[5].kind, SettingKind::Within(1, 9)));
        for (runs, read) in [(1, 1), (9, 9), (0, 3), (10, 3)] {
            let settings = Settings([("runs".to_string(), Value::from(runs))].into());
            assert_eq!(Example::of(&settings).runs, read, "no plan that was checked has {runs}");
        }
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let usual = Example::of(&Settings::default());
        assert_eq!((usual.time.as_secs(), usual.file_size, usual.colour), (2, None, Colour::Blue));
        assert_eq!((usual.names.len(), usual.none.len()), (2, 0));
        let given = [("file-size", Value::from(7)), ("colour", "red".into()), ("time", "no time".into())];
        let given = Example::of(&Settings(given.map(|(name, value)| (name.to_string(), value)).into()));
        // A value of another kind passes no check of a plan.
        assert_eq!((given.time.as_secs(), given.file_size, given.colour), (2, Some(7), Colour::Red));
        assert_eq!(Example::ROWS[1].name, "file-size");
    }

    #[test]
    fn every_default_is_of_its_kind() {
        for workload in super::super::ALL {
            for row in workload.settings().iter().filter(|row| row.default.is_some()) {
                assert!(row.default_value().is_some(), "{} {}", workload.name(), row.name);
            }
        }
    }
}
