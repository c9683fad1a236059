//! Between the pages and the API on one side, and deposits on the other.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::Multipart;
use axum::extract::multipart::{Field, MultipartError};
use axum::http::StatusCode;
use futures::Stream;
use jiff::Timestamp;
use queuekeeper_ingest::deposit::{Receipt, Upload};
use uuid::Uuid;

use super::http::identity::Identity;
use super::http::problem::Problem;
use super::state::State;
use crate::actions::deposit::{Allowance, DepositRequest, Intake, uuid_for};
use crate::actions::{Actor, Source};
use crate::views::deposits::{DepositView, uuid_of};
use crate::views::error::quoted;

/// How long the text of a field may be, in bytes.
const MOST_FIELD: usize = 8_192;

/// For how long the rest of a form is read that is refused.
const REST: Duration = Duration::from_secs(5);

/// How many fields a form may have.
const MOST_FIELDS: usize = 64;

/// The fields of a form, and the file that came with it.
#[derive(Debug)]
pub(super) struct SentForm {
    /// The fields in the order in which they came.
    pub(super) fields: Vec<(String, String)>,
    /// The file: what it is called, and what has come of it.
    pub(super) file: Option<(String, Upload)>,
    /// The deposit's UUID.
    pub(super) uuid: Uuid,
}

/// A form that was refused.
#[derive(Debug)]
pub(super) struct NotTaken {
    pub(super) problem: Problem,
    /// What came of it, without the file.
    pub(super) sent: SentForm,
}

impl From<Box<NotTaken>> for Problem {
    fn from(refused: Box<NotTaken>) -> Self {
        refused.problem
    }
}

impl SentForm {
    /// The text of a field, without what surrounds it; empty for one that was not sent.
    pub(super) fn text(&self, name: &str) -> &str {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, text)| text.trim()).unwrap_or_default()
    }

    /// The same where it is not empty.
    pub(super) fn some(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Removes what has come of the file.
    pub(super) async fn discard(&mut self) {
        if let Some((_, upload)) = self.file.take() {
            // What is left is removed after a day in any case.
            let _ = tokio::task::spawn_blocking(move || upload.remove()).await;
        }
    }
}

impl State {
    /// What takes deposits.
    ///
    /// # Errors
    /// Where this server takes none.
    pub(super) fn intake(&self) -> Result<&Intake, Problem> {
        self.shared.intake.get().ok_or_else(|| {
            Problem::missing(
                "This server accepts no deposits: start it with --deposits.working, --deposits.profiles, and a catalogue \
                 in the file of --config.file.",
            )
        })
    }

    /// What takes deposits, the caller as their depositor, and what that may deposit.
    ///
    /// # Errors
    /// Where this server takes none, or none of the caller.
    pub(super) fn depositor(&self, who: &Identity, source: Source) -> Result<(&Intake, Actor, Allowance), Problem> {
        let intake = self.intake()?;
        let (actor, allowance) = self.http().authorize_deposit(who, source)?;
        Ok((intake, actor, allowance))
    }

    /// A deposit of the caller by its id, made or being uploaded.
    ///
    /// # Errors
    /// When there is none.
    pub(super) async fn find_deposit(&self, id: &str, who: &Identity, source: Source) -> Result<DepositView, Problem> {
        let (intake, actor, _) = self.depositor(who, source)?;
        let uuid = deposit_id(id)?;
        if let Some(deposit) = intake.deposit(uuid, &actor).await? {
            let parts = intake.parts(&deposit).await?;
            let mut view = self.source().deposit(&deposit, &parts, Timestamp::now());
            // They are withdrawn together.
            view.may_withdraw &= view.part_of.is_none();
            return Ok(view);
        }
        let uploading = intake.uploading(uuid, &actor).await?.ok_or_else(|| no_deposit(id))?;
        Ok(DepositView::uploading(&uploading.0, &uploading.1))
    }

    /// Takes a form with a file. Its parts come in any order, so the file is kept before it is known what it is.
    ///
    /// # Errors
    /// When it cannot be read, or the file is refused; nothing of the file is left then.
    pub(super) async fn take_form(
        &self,
        mut form: Multipart,
        key: Option<&str>,
        (intake, actor, allowance): (&Intake, &Actor, &Allowance),
    ) -> Result<SentForm, Box<NotTaken>> {
        let mut sent = SentForm { fields: Vec::new(), file: None, uuid: uuid_for(&actor.name, key) };
        let read = async {
            while let Some(field) = form.next_field().await.map_err(|error| not_a_form(&error))? {
                let name = field.name().unwrap_or_default().to_owned();
                let file_name = field.file_name().map(str::to_owned);
                match file_name {
                    // A browser sends a field for a file that was not chosen, too.
                    Some(file_name) if !file_name.is_empty() => {
                        if sent.file.is_some() {
                            return Err(Problem::bad("One file can be deposited at a time."));
                        }
                        intake.check_allowance(actor, allowance).await?;
                        let upload = intake.take_first(sent.uuid, pieces(field), allowance).await?;
                        sent.file = Some((file_name, upload));
                    }
                    Some(_) => {}
                    None => sent.fields.push((name, text_of(field).await?)),
                }
                if sent.fields.len() > MOST_FIELDS {
                    return Err(Problem::bad(format!("A form may have at most {MOST_FIELDS} fields.")));
                }
            }
            Ok(())
        };
        match read.await {
            Ok(()) => Ok(sent),
            Err(problem) => {
                sent.discard().await;
                // A browser that is still sending shows no answer, and the page shows what was typed.
                let _ = tokio::time::timeout(REST, rest(&mut form, &mut sent)).await;
                Err(Box::new(NotTaken { problem, sent }))
            }
        }
    }

    /// Makes the deposit of a form: of its file, or of what lies at a URL.
    ///
    /// # Errors
    /// Why it is refused.
    pub(super) async fn deposit_form(
        &self,
        sent: SentForm,
        request: DepositRequest,
        key: Option<&str>,
        (intake, actor, allowance): (&Intake, &Actor, &Allowance),
    ) -> Result<Receipt, Problem> {
        use crate::actions::deposit::{Past, Taken};
        if let Some((_, upload)) = sent.file {
            return Ok(intake.make_of(sent.uuid, upload, &request, key, actor, allowance).await?);
        }
        if request.url.is_none() {
            return Err(Problem::bad("Choose a file, or enter a URL."));
        }
        match intake.begin(request, actor, allowance, key, false).await? {
            Taken::Made(receipt) => Ok(receipt),
            Taken::Withdrawn(id) => Err(Problem::new(StatusCode::CONFLICT, format!("{}.", Past::Withdrawn.why(&id)))),
            Taken::Uploading(_) | Taken::WouldBeTaken { .. } => Err(Problem::bad("Choose a file, or enter a URL.")),
        }
    }
}

/// Reads what still comes of a form that is refused: of fields their text, of files nothing.
async fn rest(form: &mut Multipart, sent: &mut SentForm) {
    while sent.fields.len() <= MOST_FIELDS
        && let Ok(Some(mut field)) = form.next_field().await
    {
        let (name, is_file) = (field.name().unwrap_or_default().to_owned(), field.file_name().is_some());
        if is_file {
            while let Ok(Some(_)) = field.chunk().await {}
        } else if let Ok(text) = text_of(field).await {
            sent.fields.push((name, text));
        }
    }
}

/// The UUID of a deposit's id.
pub(super) fn deposit_id(id: &str) -> Result<Uuid, Problem> {
    uuid_of(id).ok_or_else(|| no_deposit(id))
}

/// There is no such deposit, or it is another depositor's.
pub(super) fn no_deposit(id: &str) -> Problem {
    Problem::missing(format!("You have no deposit “{}”. A deposit's id is bid- and a UUID.", quoted(id)))
}

fn not_a_form(error: &MultipartError) -> Problem {
    let status = if error.status().is_client_error() { error.status() } else { StatusCode::BAD_REQUEST };
    Problem::new(status, format!("The form cannot be read: {}.", error.body_text()))
}

fn pieces(field: Field<'_>) -> impl Stream<Item = Result<Bytes, String>> + '_ {
    futures::stream::unfold(Some(field), |field| async move {
        let mut field = field?;
        match field.chunk().await {
            Ok(Some(bytes)) => Some((Ok(bytes), Some(field))),
            Ok(None) => None,
            Err(error) => Some((Err(error.body_text()), None)),
        }
    })
}

async fn text_of(mut field: Field<'_>) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    while let Some(more) = field.chunk().await.map_err(|error| not_a_form(&error))? {
        bytes.extend_from_slice(&more);
        if bytes.len() > MOST_FIELD {
            return Err(Problem::bad(format!("A field may have at most {MOST_FIELD} bytes.")));
        }
    }
    String::from_utf8(bytes).map_err(|_| Problem::bad("A field is not UTF-8."))
}
