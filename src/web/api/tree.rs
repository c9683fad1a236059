use axum::extract::{Path, State as FromState};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::Answer;
use crate::mirror::{Children, NOT_READABLE, Node, NodeError};
use crate::views::page::PageLimit;
use crate::views::show::visible;
use crate::views::tree::TreePage;
use crate::web::http::json::Json;
use crate::web::http::params::Params;
use crate::web::http::problem::Problem;
use crate::web::state::State;
use queuekeeper_queue::path::NodePath;

/// How many children a page has.
type Limit = PageLimit<100>;

/// Which children are shown.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(in crate::web) struct TreeQuery {
    /// Only children after this name, which need not exist.
    pub(in crate::web) after: Option<String>,
    /// The maximum number of children.
    #[param(inline)]
    pub(in crate::web) limit: Limit,
}

/// `GET /api/v1/tree`: the root of the tree, which is the chroot, with its children.
#[utoipa::path(
    get, path = "/tree",
    params(TreeQuery),
    responses(
        (status = 200, body = TreePage),
        (status = 403, description = "The znode is not readable with the credentials of this server"),
        (status = 502, description = "ZooKeeper refused the read for another reason"),
        (status = 503, description = "ZooKeeper does not answer, or too many reads are in progress"),
    ),
)]
pub(super) async fn tree_root(
    FromState(state): FromState<State>,
    Params(which): Params<TreeQuery>,
) -> Answer<TreePage> {
    let (node, children) = read(&state, "", &which).await?;
    Ok(Json(TreePage::new(&node, children)))
}

/// `GET /api/v1/tree/{path}`: a znode as it is in ZooKeeper, with its children.
#[utoipa::path(
    get, path = "/tree/{*path}",
    params(
        ("path" = String, Path, description = "Its path below the chroot, without the first slash", example = "jobs/states"),
        TreeQuery,
    ),
    responses(
        (status = 200, body = TreePage),
        (status = 403, description = "The znode is not readable with the credentials of this server"),
        (status = 502, description = "ZooKeeper refused the read for another reason"),
        (status = 503, description = "ZooKeeper does not answer, or too many reads are in progress"),
    ),
)]
pub(super) async fn tree(
    FromState(state): FromState<State>,
    Path(path): Path<String>,
    Params(which): Params<TreeQuery>,
) -> Answer<TreePage> {
    let (node, children) = read(&state, &path, &which).await?;
    Ok(Json(TreePage::new(&node, children)))
}

/// Reads a znode, by its path without the first slash.
pub(in crate::web) async fn read(state: &State, path: &str, which: &TreeQuery) -> Result<(Node, Children), Problem> {
    let path = NodePath::parse(&format!("/{path}"))
        .map_err(|why| Problem::bad(format!("Not a valid path of a znode: {why}.")))?;
    let read = state.shared.store.nodes().list(&path, which.after.as_deref(), which.limit.get()).await;
    read.map_err(|error| problem(&error))
}

fn problem(error: &NodeError) -> Problem {
    let (status, path, what) = match error {
        NodeError::NotConnected { path } => {
            (StatusCode::SERVICE_UNAVAILABLE, path, "cannot be read: there is no connection to ZooKeeper")
        }
        NodeError::Busy { path } => (
            StatusCode::SERVICE_UNAVAILABLE,
            path,
            "cannot be read: too many reads are in progress. Try again in a moment",
        ),
        NodeError::TimedOut { path } => {
            (StatusCode::SERVICE_UNAVAILABLE, path, "cannot be read: ZooKeeper did not answer in time")
        }
        NodeError::NoNode { path } => (StatusCode::NOT_FOUND, path, "is not there; it may have been deleted since"),
        NodeError::NoAuth { path } => (StatusCode::FORBIDDEN, path, NOT_READABLE),
        NodeError::Failed { path, source } => {
            tracing::warn!(%path, error = %source, "a znode could not be read");
            (StatusCode::BAD_GATEWAY, path, "cannot be read: ZooKeeper refused. The log has the cause")
        }
    };
    let name: String = path.as_str().chars().take(200).collect();
    Problem::new(status, format!("The znode {} {what}.", visible(&name)))
}
