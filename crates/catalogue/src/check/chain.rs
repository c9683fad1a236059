//! Whether the audit log is as it was written.

use super::{CatalogueFinding, MOST_FINDINGS, RESTORE};
use crate::audit::{AFTER, Event};
use crate::database::Session;
use crate::database::value::values;
use crate::error::Error;

/// How many events are read at once.
const PAGE: u32 = 1000;

/// Follows the hashes from the first event to the head.
pub(super) async fn check(session: &mut Session, findings: &mut Vec<CatalogueFinding>) -> Result<(), Error> {
    let mut broken = 0;
    let mut add = |what: String| {
        broken += 1;
        if broken <= MOST_FINDINGS {
            findings.push(CatalogueFinding { what, fix: RESTORE });
        }
    };
    let (mut seq, mut hash) = (0, [0; 32]);
    loop {
        let rows = session.rows(AFTER, values![seq, PAGE]).await?;
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            let event = match Event::read(row) {
                Ok(event) => event,
                Err(error) => {
                    let unreadable: u64 = session.decode(row.count(0))?;
                    add(format!("event {unreadable} of the audit log is unreadable ({error})"));
                    seq = unreadable;
                    continue;
                }
            };
            if event.seq != seq + 1 {
                add(format!("the audit log lacks the events {} to {}", seq + 1, event.seq - 1));
            } else if event.previous_hash != hash {
                add(format!("event {seq} of the audit log was altered after it was written"));
            }
            (seq, hash) = (event.seq, event.hash());
        }
    }
    let head = session.row("SELECT seq, hash FROM audit_chain", values![]).await?;
    let head = head.map(|row| session.decode(row.count(0).and_then(|seq| Ok((seq, row.get::<Vec<u8>>(1)?)))));
    match head.transpose()? {
        Some((last, last_hash)) if last == seq && last_hash == hash => {}
        Some((last, _)) if last == seq => add(format!("event {seq} of the audit log was altered after it was written")),
        Some((last, _)) => add(format!("the audit log ends with event {seq}, but {last} events were written")),
        None => add("the head of the audit log is missing".to_owned()),
    }
    Ok(())
}
