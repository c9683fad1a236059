//! Actions on the command line: show, confirm, execute, report the outcome.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::actor::{AuditArgs, actor};
use super::client::Link;
use super::exit::{CommandError, FAILED, IN_PART, NOT_FOUND, REFUSED, UNKNOWN, with_causes};
use super::output::{Bar, OutputArgs, Screen, is_attended, note};
use super::prompt::Interrupts;
use super::words::count;
use super::{UsageError, headings};
use crate::actions::audit::Audit;
use crate::actions::{Action, Actions, Actor, BulkAction, Execution, ListOf, Reason, Target};
use crate::mirror::MirrorStore;
use crate::views::actions::ActionView;

/// The refresh interval of the progress bar.
const REFRESH_INTERVAL: Duration = Duration::from_millis(100);

/// How many failed items are listed.
const MAX_LISTED: usize = 20;

/// The options of commands that execute actions.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = headings::ACTING)]
pub(super) struct ActArgs {
    /// The reason, which is recorded in the audit file and, if it fits, in the changed item
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,

    /// Execute without confirmation; requires --reason
    #[arg(long, requires = "reason")]
    yes: bool,

    /// Show what would be written, without writing it
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    #[command(flatten)]
    audit: AuditArgs,
}

/// What actions need: a session, the audit trail, and the user.
#[derive(Debug)]
pub(super) struct ActionSession<'a> {
    args: &'a ActArgs,
    output: OutputArgs,
    actions: Actions,
    actor: Actor,
    written: CancellationToken,
    writer: AbortOnDropHandle<()>,
    interrupts: Interrupts,
    /// The parameters for actions, checked once.
    reason: OnceLock<Reason>,
}

impl ActArgs {
    /// Refuses early what would need a confirmation that cannot be given, or a result that cannot be shown.
    pub(super) fn check(&self, output: OutputArgs) -> Result<(), UsageError> {
        output.check_action()?;
        if let Some(reason) = &self.reason {
            Reason::new(reason).map_err(|error| UsageError::flag("--reason", error))?;
        }
        if self.yes || self.dry_run || is_attended() {
            return Ok(());
        }
        Err(UsageError(
            "standard input is not a terminal, so the action cannot be confirmed: use --yes with --reason, or --dry-run"
                .to_owned(),
        ))
    }

    /// Opens the audit trail. With a mirror, faults can be detected.
    fn session(
        &self,
        link: &Link,
        store: Option<MirrorStore>,
        output: OutputArgs,
    ) -> anyhow::Result<ActionSession<'_>> {
        let interrupts = Interrupts::listen()?;
        let (audit, writer) = Audit::open(self.audit.destination()?)
            .map_err(|error| CommandError::new(FAILED, format!("{error}; nothing was done")))?;
        let written = CancellationToken::new();
        let writer = AbortOnDropHandle::new(tokio::spawn(writer.run(written.clone())));
        let actions = Actions::over(link.queue(), (store, link.clock(self.dry_run)), link.limits.clone(), audit);
        let (actor, reason) = (actor(), OnceLock::new());
        Ok(ActionSession { args: self, output, actions, actor, written, writer, interrupts, reason })
    }

    /// Opens the audit trail, executes something, and waits until it is recorded.
    pub(super) async fn with_session(
        &self,
        link: &Link,
        store: Option<MirrorStore>,
        output: OutputArgs,
        work: impl AsyncFnOnce(&ActionSession<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let session = self.session(link, store, output)?;
        let outcome = work(&session).await;
        session.close().await;
        outcome
    }

    /// Whether nothing is to be written.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Whether no confirmation is required.
    pub(super) fn is_sure(&self) -> bool {
        self.yes
    }
}

impl ActionSession<'_> {
    /// Executes one action, or shows it, and reports the outcome.
    pub(super) async fn action(&self, action: Action) -> anyhow::Result<()> {
        let view = self.execute(action).await?;
        self.output.show(&view, |screen| report(&view, screen))?;
        // A part of it may have failed, such as batches that turned out not to be finished.
        if view.not_done + view.unknown > 0 { Err(in_part(&view).into()) } else { Ok(()) }
    }

    /// The same for many, one after the other: each is shown before it is executed. After a refusal or a "no" the next
    /// ones follow; a signal and any other error end the command. What was done before is shown.
    pub(super) async fn one_by_one(&self, mut actions: impl Iterator<Item = Action>) -> anyhow::Result<()> {
        let (mut views, mut refused, mut ended) = (Vec::new(), None, None);
        for action in actions.by_ref() {
            let on = action.target().to_string();
            match self.execute(action).await {
                Ok(view) => views.push(view),
                Err(error) if !self.interrupts.is_interrupted() && matches!(code(&error), REFUSED | NOT_FOUND) => {
                    note(&format!("{on}: {error}"));
                    refused = Some(error);
                }
                Err(error) => {
                    ended = Some((on, error));
                    break;
                }
            }
        }
        if ended.is_none() || !views.is_empty() {
            self.output.show(&views, |screen| views.iter().for_each(|view| report(view, screen)))?;
        }
        let is_nothing_done = views.is_empty() || self.args.dry_run;
        match (ended, refused) {
            (None, None) => Ok(()),
            (Some((_, error)), _) | (None, Some(error)) if is_nothing_done => Err(error),
            (None, Some(_)) => Err(CommandError::new(IN_PART, format!("{} done, others not", views.len())).into()),
            (Some((on, error)), _) => {
                let code = if code(&error) == UNKNOWN { UNKNOWN } else { IN_PART };
                let left = match actions.count() {
                    0 => String::new(),
                    left => format!("; {left} more not started"),
                };
                Err(CommandError::new(code, format!("{} done; {on}: {}{left}", views.len(), with_causes(&error)))
                    .into())
            }
        }
    }

    /// Executes an action, or only plans it in a dry run.
    pub(super) async fn execute(&self, mut action: Action) -> anyhow::Result<ActionView> {
        let now = Timestamp::now();
        let reason = self.reason().await?;
        let words = reason.as_ref().map_or("", Reason::as_str);
        if !self.args.yes {
            let plan = self.actions.plan(&action, &self.actor, words, now);
            let prepared = self.interrupts.unless(plan).await?.map_err(CommandError::from)?;
            let view = ActionView::planned(&prepared, words);
            if self.args.dry_run {
                return Ok(view);
            }
            let mut screen = Screen::beside();
            report(&view, &mut screen);
            screen.print();
            self.interrupts.confirm("Continue?").await?;
            action.precondition = Some(prepared.precondition.clone());
        }
        let Some(reason) = reason else { return Err(UsageError("an action requires --reason".to_owned()).into()) };
        // The confirmation may have taken a while.
        let now = Timestamp::now();
        self.interrupts.unless(std::future::ready(())).await?;
        let taken =
            self.actions.execute(action, self.actor.clone(), reason, None, now).await.map_err(CommandError::from)?;
        self.follow(&taken.execution).await;
        taken.execution.finished().await.map_err(CommandError::from)?;
        Ok(ActionView::of(&taken.execution))
    }

    /// Executes the action on each item of a list, or shows it. `of` is what the list contains.
    pub(super) async fn each(
        &self,
        bulk: BulkAction,
        of: ListOf,
        items: Vec<(Target, Option<i32>)>,
        sample: impl FnOnce(&mut Screen),
    ) -> anyhow::Result<()> {
        let now = Timestamp::now();
        if items.is_empty() {
            note(&format!("no {} matches; nothing to do", of.words(1)));
            return Ok(());
        }
        let (many, what) = (items.len() as u64, of.words(items.len()));
        let first = items[0].0.clone();
        let frozen = self.actions.freeze(bulk, of, items, &self.actor, now).map_err(CommandError::from)?;
        let reason = self.reason().await?;
        if !self.args.yes {
            let words = reason.as_ref().map_or("", Reason::as_str);
            let action = bulk.on(&first, None).map_err(CommandError::from)?;
            let planned = self.interrupts.unless(self.actions.plan(&action, &self.actor, words, now)).await?;
            let show = |screen: &mut Screen| {
                screen.say(&format!("{} of {} {what}, such as:", bulk.kind.title(), count(many)));
                sample(screen);
                screen.gap();
                match &planned {
                    Ok(prepared) => {
                        screen.say("The action on the first of them, as an example:");
                        report(&ActionView::planned(prepared, words), screen);
                    }
                    Err(refusal) => screen.say(&format!("The first of them would be refused: {refusal}.")),
                }
            };
            if self.args.dry_run {
                let view = ActionView {
                    action: bulk.kind.to_string(),
                    on: format!("{many} {what}"),
                    reason: words.to_owned(),
                    outcome: "dry_run".to_owned(),
                    count: many,
                    ..ActionView::default()
                };
                return self.output.show(&view, show);
            }
            let mut screen = Screen::beside();
            show(&mut screen);
            screen.print();
            self.interrupts.confirm(&format!("Continue with all {}?", count(many))).await?;
        }
        let Some(reason) = reason else { return Err(UsageError("an action requires --reason".to_owned()).into()) };
        let requested = self.actions.execute_frozen(frozen.id, self.actor.clone(), reason, Timestamp::now());
        let work = requested.map_err(CommandError::from)?;
        self.follow(&work).await;
        work.finished().await.map_err(CommandError::from)?;
        let view = ActionView::of(&work);
        self.output.show(&view, |screen| report(&view, screen))?;
        if view.done < view.count { Err(in_part(&view).into()) } else { Ok(()) }
    }

    /// Shows the progress of an action until it has finished. A signal cancels a bulk action: items in progress are
    /// finished.
    async fn follow(&self, work: &Arc<Execution>) {
        let bar = Bar::start(format!("{} {}", work.action.title(), work.on), work.progress().of);
        let mut look = interval(REFRESH_INTERVAL);
        let mut over = std::pin::pin!(work.finished());
        loop {
            tokio::select! {
                _ = &mut over => return,
                _ = look.tick() => {
                    let reached = work.progress();
                    bar.set(reached.ended(), reached.of);
                }
                () = self.interrupts.wait(), if !work.is_cancelled() => work.cancel(&self.actor.name),
            }
        }
    }

    /// The reason; prompted for if it is not set and there is a terminal.
    async fn reason(&self) -> anyhow::Result<Option<Reason>> {
        if let Some(reason) = self.reason.get() {
            return Ok(Some(reason.clone()));
        }
        let text = match &self.args.reason {
            Some(reason) => reason.clone(),
            None if self.args.dry_run => return Ok(None),
            None => self.interrupts.ask("Reason:  ").await?,
        };
        let reason = Reason::new(&text).map_err(|error| UsageError::flag("--reason", error))?;
        Ok(Some(self.reason.get_or_init(|| reason).clone()))
    }

    /// Waits until everything is recorded.
    async fn close(self) {
        self.actions.end().await;
        self.written.cancel();
        // It has written everything, or reported why not.
        let _ = self.writer.await;
        self.interrupts.close().await;
    }
}

/// The exit code of an error.
fn code(error: &anyhow::Error) -> u8 {
    error.downcast_ref::<CommandError>().map_or(FAILED, |ending| ending.code)
}

fn in_part(view: &ActionView) -> CommandError {
    let ActionView { done, not_done, unknown, .. } = *view;
    let code = match (unknown, done) {
        (1.., _) => UNKNOWN,
        (0, 0) => REFUSED,
        (0, _) => IN_PART,
    };
    let left = view.count.saturating_sub(done + not_done + unknown);
    let left = if left > 0 { format!(", {} not started", count(left)) } else { String::new() };
    let [done, not_done, unknown] = [done, not_done, unknown].map(count);
    CommandError::new(code, format!("{done} done, {not_done} not done, {unknown} unknown{left}"))
}

/// Reports what an action would do, or its outcome.
pub(super) fn report(view: &ActionView, screen: &mut Screen) {
    let states = match (&view.before, &view.after) {
        (Some(before), Some(after)) if before != after => format!(", {before} to {after}"),
        (Some(before), None) if view.id.is_none() => format!(", which is {before}"),
        _ => String::new(),
    };
    let outcome = match &view.id {
        Some(id) => {
            let detail = view.detail.as_ref().map(|detail| format!(", {detail}")).unwrap_or_default();
            format!(": {}{detail} (action {id})", view.outcome)
        }
        None => ":".to_owned(),
    };
    screen.entry(&format!("{} {}{states}{outcome}", view.action, view.on));
    for operation in &view.operations {
        screen.entry_beneath(operation);
    }
    for lost in &view.lost {
        screen.entry(&format!("Not kept: {} {}", lost.path, lost.data));
    }
    for item in &view.written {
        screen.entry(&format!("{}: {}", item.on, item.what));
    }
    let unlisted = view.done.saturating_sub(view.written.len() as u64);
    if !view.written.is_empty() && unlisted > 0 {
        screen.say(&format!("and {} more: see the audit file", count(unlisted)));
    }
    for item in view.not_done_items.iter().take(MAX_LISTED) {
        screen.entry_beneath(&format!("{}: {}", item.on, item.why));
    }
    if view.not_done_items.len() > MAX_LISTED {
        screen.beneath("and more: see the audit file");
    }
    for warning in &view.warnings {
        screen.entry(&format!("Note: {warning}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bulk_action_that_failed_in_part_has_its_own_exit_code() {
        let view =
            |done, not_done, unknown| ActionView { done, not_done, unknown, count: 1_200, ..ActionView::default() };
        for (done, not_done, unknown, code, text) in [
            (1_000, 2, 0, 6, "1,000 done, 2 not done, 0 unknown, 198 not started"),
            (0, 1_200, 0, 3, "0 done, 1,200 not done, 0 unknown"),
            (36, 8, 1_156, 5, "36 done, 8 not done, 1,156 unknown"),
            (0, 0, 1, 5, "0 done, 0 not done, 1 unknown, 1,199 not started"),
        ] {
            assert_eq!(in_part(&view(done, not_done, unknown)), CommandError::new(code, text));
        }
    }
}
