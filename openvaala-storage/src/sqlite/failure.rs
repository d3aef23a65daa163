//! What the errors of SQLite mean for the caller.

use std::fs::File;
use std::io;
use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use crate::error::Error;

/// Says what an error of SQLite means for the caller.
pub(super) fn error(path: &Path, source: rusqlite::Error) -> Error {
    match &source {
        rusqlite::Error::SqliteFailure(failure, _)
        | rusqlite::Error::SqlInputError { error: failure, .. } => {
            let failure = *failure;
            of_sqlite(path, failure, source)
        }
        // A value of a type or an encoding that was never written is damage.
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::QueryReturnedNoRows
        | rusqlite::Error::Utf8Error(..) => corrupt(path, source),
        _ => Error::backend("sqlite", source),
    }
}

fn of_sqlite(path: &Path, failure: ffi::Error, source: rusqlite::Error) -> Error {
    let io = |kind| Error::io("use", path, io::Error::new(kind, source.to_string()));
    match failure.code {
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => corrupt(path, source),
        // The statements are fixed: they fail only on tables or rows that are not as they were made.
        ErrorCode::Unknown | ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => {
            corrupt(path, source)
        }
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::FileLockingProtocolFailed => Error::Busy {
            path: path.to_owned(),
        },
        ErrorCode::DiskFull => io(io::ErrorKind::StorageFull),
        ErrorCode::PermissionDenied => io(io::ErrorKind::PermissionDenied),
        ErrorCode::ReadOnly => match failure.extended_code {
            // The file that is open has another name now, or none.
            ffi::SQLITE_READONLY_DBMOVED => io(io::ErrorKind::NotFound),
            _ => io(io::ErrorKind::ReadOnlyFilesystem),
        },
        ErrorCode::CannotOpen => match File::open(path) {
            // The file itself can be opened: it is a companion that must not be made.
            Ok(_) => io(io::ErrorKind::PermissionDenied),
            Err(cause) => Error::io("open", path, cause),
        },
        ErrorCode::SystemIoFailure => match failure.extended_code {
            ffi::SQLITE_IOERR_SHORT_READ | ffi::SQLITE_IOERR_DATA | ffi::SQLITE_IOERR_CORRUPTFS => {
                corrupt(path, source)
            }
            _ => io(io::ErrorKind::Other),
        },
        _ => Error::backend("sqlite", source),
    }
}

fn corrupt(path: &Path, source: rusqlite::Error) -> Error {
    Error::Corrupt {
        path: path.to_owned(),
        source: source.into(),
    }
}
