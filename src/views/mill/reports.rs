//! Reports on the integrity of spaces: what each covers, what is wrong, and its files.

use jiff::Timestamp;
use queuekeeper_catalogue::bit::{BitRun, LoggedCheck, Reports, StoredReport};
use queuekeeper_mill::bit::coverage::{Coverage, Lack, ReportResult};
use queuekeeper_mill::bit::policy::ProofPolicy;
use queuekeeper_mill::bit::producer::PRODUCER;
use queuekeeper_mill::bit::seals;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::ErrorProof;
use super::{Mill, ViewError, unavailable};
use crate::views::error::quoted;
use crate::views::parameter::Within;
use crate::words::counted;

/// How many reports, or items of one, a page has.
type Limit = Within<1, 1000, 100>;

/// The results of which a report shows items.
const WRONG: [&str; 2] = ["error", "failure"];

/// Which reports; without any of these, all of them.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct ReportFilter {
    /// Those of this account.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) account: String,
    /// Those of this store.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>)]
    pub(crate) store: String,
    /// Those of this space, as accounts name it.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[param(value_type = Option<String>, example = "theses")]
    pub(crate) space: String,
    /// Only the newest of each space, if it is not a success: of the loop that is under way or was last, or of the one
    /// before.
    pub(crate) unsuccessful: bool,
    /// Those with a number below this: `next` of the previous page.
    #[param(value_type = Option<u64>)]
    pub(crate) before: Option<u64>,
    /// How many to show at most, 1 to 1,000.
    #[param(inline)]
    pub(crate) limit: Limit,
}

/// Which of the items of a report that something is wrong with.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub(crate) struct ReportPage {
    /// Those whose check has a number above this: `next` of the previous page.
    #[param(value_type = Option<u64>)]
    pub(crate) after: u64,
    /// How many to show at most, 1 to 1,000.
    #[param(inline)]
    pub(crate) limit: Limit,
}

/// A page of reports, the newest loop first.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ReportList {
    /// The reports of this page.
    pub(crate) items: Vec<ReportItem>,
    /// `before` of the next page; null on the last one.
    pub(crate) next: Option<u64>,
}

/// The report on a space of a store in one loop.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ReportItem {
    /// Its number.
    pub(crate) number: u64,
    /// The account.
    #[schema(example = "account1")]
    pub(crate) account: String,
    /// The store.
    #[schema(example = "replica")]
    pub(crate) store: String,
    /// The space, as the account names it.
    #[schema(example = "theses")]
    pub(crate) space: String,
    /// The number of the loop.
    #[serde(rename = "loop")]
    pub(crate) loop_number: u64,
    /// The proof that was required: `read`, `provider`, or such as `read 1/12`.
    #[schema(example = "read")]
    pub(crate) policy: String,
    /// When the checks of the space began.
    pub(crate) started: Timestamp,
    /// When all of them had ended.
    pub(crate) ended: Option<Timestamp>,
    /// When the report was stored.
    pub(crate) reported: Timestamp,
    /// `success`, `incomplete` or `failure`.
    #[schema(example = "incomplete")]
    pub(crate) result: String,
    /// Whether it covers every item as the policy asks for, whatever is wrong with some; null of an old report.
    pub(crate) is_complete: Option<bool>,
    /// Whether no later one is on the same space.
    pub(crate) is_newest: bool,
    /// Why it is not a success, each in a few words, what is wrong first.
    #[schema(example = json!(["3 items never reached"]))]
    pub(crate) lacks: Vec<String>,
    /// How many items the store listed or had later; null of an old report, as are the next three.
    pub(crate) items: Option<u64>,
    /// Their size.
    pub(crate) bytes: Option<u64>,
    /// How many are proven, by reading or by the provider.
    pub(crate) proven: Option<u64>,
    /// How many are not as recorded, recorded and missing, or stored and not recorded.
    pub(crate) wrong: Option<u64>,
}

/// A report.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct ReportDetail {
    /// Its summary.
    pub(crate) report: ReportItem,
    /// What it covers, what is wrong first; empty of an old report.
    pub(crate) coverage: Vec<CoveragePart>,
    /// Its files in the store.
    pub(crate) files: Vec<StoredFile>,
    /// A page of the items with errors, in the order in which they were found.
    pub(crate) failed: Vec<FailedItem>,
    /// `after` of the next page; null on the last one.
    pub(crate) next: Option<u64>,
}

/// How much of a space is in one part of a coverage.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct CoveragePart {
    /// Its name, as in the file.
    #[schema(example = "never_reached")]
    pub(crate) part: &'static str,
    /// What it is, in words.
    #[schema(example = "never reached")]
    pub(crate) words: &'static str,
    /// Why, of what was skipped; empty of the others.
    pub(crate) why: String,
    /// How many items.
    pub(crate) items: u64,
    /// Their size.
    pub(crate) bytes: u64,
    /// The result that it leads to, `failure` or `incomplete`; null where a success may have it.
    pub(crate) leads_to: Option<&'static str>,
}

/// A file of a report.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct StoredFile {
    /// `tsv`, the table of all items; `coverage`, the table of what it covers; `json`, both as a document.
    pub(crate) format: &'static str,
    /// The store.
    pub(crate) store: String,
    /// The space, as the store names it.
    pub(crate) space: String,
    /// The key.
    pub(crate) key: String,
}

/// An item with an error.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct FailedItem {
    /// The number of its check.
    pub(crate) number: u64,
    /// When that ended.
    pub(crate) time: Timestamp,
    /// The key, with escapes for invisible characters.
    pub(crate) key: String,
    /// The key, percent-encoded.
    pub(crate) key_encoded: String,
    /// `failure`, or `error` if the evidence is contradictory.
    pub(crate) result: String,
    /// The names of what was found.
    #[schema(example = json!(["content_damaged"]))]
    pub(crate) findings: Vec<String>,
    /// What was found, in words.
    #[schema(example = "content damaged")]
    pub(crate) detail: String,
    /// What was seen and what is recorded.
    pub(crate) proof: ErrorProof,
}

impl Mill {
    /// Reports.
    ///
    /// # Errors
    /// For an account, a store or a space that does not exist, and when the catalogue cannot be read.
    pub(crate) async fn reports(&self, filter: &ReportFilter) -> Result<ReportList, ViewError> {
        let ReportFilter { account, store, space, unsuccessful, before, limit } = filter;
        if !account.is_empty() {
            self.account(account)?;
        }
        let unsuccessful = if *unsuccessful { Some(self.last_reported_loop().await?) } else { None };
        let (of, limit) = (Reports { account, store, space, unsuccessful }, limit.get());
        let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
        let mut runs = self.catalogue().bit_reports(of, *before, most).await.map_err(|error| unavailable(&error))?;
        let has_more = runs.len() > limit;
        runs.truncate(limit);
        let items: Vec<_> = runs.into_iter().filter_map(|run| Known::of(run).map(|known| known.item())).collect();
        let next = items.last().filter(|_| has_more).map(|item| item.number);
        if items.is_empty() {
            self.check_names(filter).await?;
        }
        Ok(ReportList { items, next })
    }

    /// A report.
    ///
    /// # Errors
    /// Where there is none with this number, and when the catalogue cannot be read.
    pub(crate) async fn report(&self, number: &str, page: &ReportPage) -> Result<ReportDetail, ViewError> {
        let known = self.known_report(number).await?;
        let (mut failed, limit) = (Vec::new(), page.limit.get());
        let most = u32::try_from(limit + 1).unwrap_or(u32::MAX);
        for result in WRONG {
            let checks = self.catalogue().checks_of_run(known.run.id, result, page.after, most).await;
            failed.extend(checks.map_err(|error| unavailable(&error))?);
        }
        failed.sort_by_key(|check| check.id);
        let has_more = failed.len() > limit;
        failed.truncate(limit);
        let next = failed.last().filter(|_| has_more).map(|check| check.id);
        Ok(ReportDetail {
            report: known.item(),
            coverage: known.parts(),
            files: known.files(),
            failed: failed.into_iter().map(FailedItem::from).collect(),
            next,
        })
    }

    pub(super) async fn known_report(&self, number: &str) -> Result<Known, ViewError> {
        let none = || ViewError::not_found(format!("There is no report “{}”.", quoted(number)));
        let id = number.parse().map_err(|_| none())?;
        let run = self.catalogue().bit_run(id).await.map_err(|error| unavailable(&error))?;
        run.and_then(Known::of).ok_or_else(none)
    }

    /// The number of the first loop of which a report says how a space is: a space that is in no later one is gone, or
    /// is not checked any more.
    pub(super) async fn last_reported_loop(&self) -> Result<u64, ViewError> {
        let state = self.catalogue().loop_state(PRODUCER).await.map_err(|error| unavailable(&error))?;
        Ok(state.map_or(0, |state| state.number.saturating_sub(1)))
    }
}

/// A run that has a report, with its coverage, where that was kept and can be read.
pub(super) struct Known {
    run: BitRun,
    report: StoredReport,
    coverage: Option<(Coverage, Vec<Lack>)>,
}

impl Known {
    fn of(mut run: BitRun) -> Option<Self> {
        let report = run.report.take()?;
        let coverage = report.coverage.as_deref().and_then(|kept| serde_json::from_str::<Coverage>(kept).ok());
        let coverage = coverage.zip(run.policy.parse::<ProofPolicy>().ok());
        let coverage = coverage.map(|(coverage, policy)| {
            let lacks = coverage.lacks(policy.proof());
            (coverage, lacks)
        });
        Some(Self { run, report, coverage })
    }

    fn item(&self) -> ReportItem {
        let Self { run, report, coverage } = self;
        let of = |sum: fn(&Coverage) -> u64| coverage.as_ref().map(|(coverage, _)| sum(coverage));
        let lack = |lack: &Lack| format!("{} {}", counted(lack.items, "item", "items"), lack.words);
        ReportItem {
            number: run.id,
            account: run.account.clone(),
            store: run.store.to_string(),
            space: run.space.to_string(),
            loop_number: run.number,
            policy: run.policy.clone(),
            started: run.started,
            ended: run.ended,
            reported: report.time,
            result: report.result.clone(),
            is_complete: report.is_complete,
            is_newest: report.is_newest,
            lacks: coverage.iter().flat_map(|(_, lacks)| lacks).map(lack).collect(),
            items: of(|coverage| coverage.stored.items),
            bytes: of(|coverage| coverage.stored.bytes),
            proven: of(|coverage| coverage.read.items + coverage.provider.items),
            wrong: of(|coverage| coverage.failed.items + coverage.missing.items + coverage.foreign.items),
        }
    }

    /// The parts that have items, and what the store listed; those that lead to no success first.
    fn parts(&self) -> Vec<CoveragePart> {
        let Some((coverage, lacks)) = &self.coverage else { return Vec::new() };
        let lack = |name| lacks.iter().find(|lack: &&Lack| lack.part == name);
        let parts = coverage.parts().filter(|(name, _, amount)| amount.items > 0 || *name == "stored");
        let mut parts: Vec<_> = parts
            .map(|(part, why, amount)| CoveragePart {
                part,
                words: lack(part).map_or_else(|| words(part), |lack| lack.words),
                why: why.unwrap_or_default().to_owned(),
                items: amount.items,
                bytes: amount.bytes,
                leads_to: lack(part).map(|lack| lack.result.as_str()),
            })
            .collect();
        let place = |part: &CoveragePart| lacks.iter().position(|lack| lack.part == part.part).unwrap_or(lacks.len());
        parts.sort_by_key(place);
        parts
    }

    fn files(&self) -> Vec<StoredFile> {
        let mut place = self.report.place.splitn(3, '/');
        let (Some(store), Some(space), Some(key)) = (place.next(), place.next(), place.next()) else {
            return Vec::new();
        };
        let file = |(format, ending)| StoredFile {
            format,
            store: store.to_owned(),
            space: space.to_owned(),
            key: format!("{key}.{ending}"),
        };
        [
            ("tsv", "tsv"),
            ("coverage", "coverage.tsv"),
            ("json", "json"),
            ("premis", "premis.xml"),
            ("seal", seals::ENDING),
        ]
        .map(file)
        .into()
    }

    /// The name that a file has without its folders: with the store and the space that it is about.
    pub(super) fn file_name(&self, file: &StoredFile) -> String {
        let BitRun { store, space, .. } = &self.run;
        format!("{store}-{space}-{}", file.key.rsplit('/').next().unwrap_or_default())
    }

    /// The file of a format.
    pub(super) fn file(&self, format: &str) -> Option<StoredFile> {
        self.files().into_iter().find(|file| file.format == format)
    }
}

/// What a part of a coverage is that leads to no other result than success.
fn words(part: &str) -> &'static str {
    match part {
        "stored" => "listed by the store or found there later",
        "read" => "proven by reading",
        "provider" => "proven by the store's checksum",
        "skipped" => "skipped",
        "gone" => "deleted since it was listed",
        _ => "other",
    }
}

impl From<LoggedCheck> for FailedItem {
    fn from(check: LoggedCheck) -> Self {
        let LoggedCheck { id, time, key, result, findings, evidence, detail, .. } = check;
        Self {
            number: id,
            time,
            key: key.to_string(),
            key_encoded: key.encoded(),
            result,
            findings,
            detail: detail.unwrap_or_default(),
            proof: ErrorProof::of(&evidence),
        }
    }
}

/// The tag of a result.
pub(crate) fn tag(result: &str) -> &'static str {
    if result == ReportResult::Success.as_str() {
        "good"
    } else if result == ReportResult::Incomplete.as_str() {
        "warn"
    } else {
        "bad"
    }
}
