//! Commands by rows: of each, its name, its arguments, and how it is run.

use futures::future::LocalBoxFuture;

/// What a command does, until it has ended.
pub(super) type Running = LocalBoxFuture<'static, anyhow::Result<()>>;

/// Makes an enum of commands from a row for each: the name, the type of its arguments, and `at_once` where its `run` is
/// no future. Help and order are those of the types and rows.
///
/// `run` of the enum runs the one that was named.
macro_rules! commands {
    ($(#[$of_all:meta])* enum $all:ident {
        $($(#[$of_one:meta])* $command:ident($args:ty) $($at_once:ident)?,)+
    }) => {
        $(#[$of_all])*
        // Boxed, since some have many more flags than others.
        #[derive(Clone, Debug, clap::Subcommand)]
        enum $all { $($(#[$of_one])* $command(Box<$args>),)+ }

        impl $all {
            fn run(self) -> $crate::cli::commands::Running {
                match self {
                    $(Self::$command(args) => Box::pin(async move { commands!(@run args $($at_once)?) }),)+
                }
            }
        }
    };
    (@run $args:ident at_once) => { $args.run() };
    (@run $args:ident) => { Box::pin($args.run()).await };
}

pub(super) use commands;
