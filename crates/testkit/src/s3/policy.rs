//! What the pair of keys is allowed to do, by a policy document in AWS's form.
//!
//! Statements with `Allow`, `Action` and `Resource` are known, with `*` in resources; nothing else may be in a
//! document, so that none seems to be in force that is not.

use parking_lot::RwLock;
use s3s::dto::CopySource;
use s3s::{S3Result, s3_error};
use serde::Deserialize;

/// The page that has the documents for users.
const DOCUMENTED: &str = include_str!("../../../../SECURITY.md");

/// What a store may be used for, by the documents of `SECURITY.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privileges {
    /// To read what is in it.
    Read,
    /// To write and delete, too.
    Write,
    /// The same with `restore`.
    Restore,
}

impl Privileges {
    /// The document for a store in a bucket, below a prefix.
    ///
    /// # Panics
    /// When `SECURITY.md` has none.
    #[must_use]
    pub fn document(self, bucket: &str, prefix: &str) -> String {
        let documents = DOCUMENTED.split("```json\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0));
        let writes = |document: &str| document.contains("s3:PutObject");
        let mut policies = documents.filter(|document| document.contains("s3:GetObject"));
        let document = policies.find(|document| writes(document) == (self != Self::Read));
        let document = document.expect("SECURITY.md has a policy document");
        let document = document.replace(":::preservation\"", &format!(":::{bucket}\""));
        let document = document.replace(":::preservation/copies/", &format!(":::{bucket}/{prefix}/"));
        match self {
            Self::Restore => document.replace("\"s3:PutObject\"", "\"s3:PutObject\", \"s3:RestoreObject\""),
            Self::Read | Self::Write => document,
        }
    }
}

/// A policy document.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Document {
    #[serde(rename = "Version")]
    _version: String,
    statement: Vec<Statement>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Statement {
    #[serde(rename = "Sid")]
    _sid: Option<String>,
    #[serde(rename = "Effect")]
    _effect: Effect,
    action: Vec<String>,
    resource: Vec<String>,
}

#[derive(Debug, Deserialize)]
enum Effect {
    Allow,
}

/// What is allowed: everything, as long as no document says otherwise.
#[derive(Debug, Default)]
pub(super) struct Policy(RwLock<Option<Document>>);

impl Policy {
    /// Allows what a document says, and nothing else.
    ///
    /// # Panics
    /// When it is not in the form above.
    pub(super) fn set(&self, document: &str) {
        *self.0.write() = Some(serde_json::from_str(document).expect("a policy document"));
    }

    /// Refuses an operation that is not allowed, as S3 does.
    pub(super) fn check(
        &self,
        operation: &str,
        (bucket, key): (Option<&str>, Option<&str>),
        copied: Option<&CopySource>,
    ) -> S3Result<()> {
        let document = self.0.read();
        let Some(document) = &*document else { return Ok(()) };
        let mut needed = vec![(action(operation), resource(bucket, key))];
        if let Some(CopySource::Bucket { bucket, key, .. }) = copied {
            needed.push(("s3:GetObject", resource(Some(bucket), Some(key))));
        }
        match needed.iter().find(|(action, resource)| !document.allows(action, resource)) {
            None => Ok(()),
            Some((action, resource)) => {
                Err(s3_error!(AccessDenied, "not authorized to perform: {action} on resource: {resource}"))
            }
        }
    }
}

impl Document {
    fn allows(&self, action: &str, resource: &str) -> bool {
        self.statement.iter().any(|statement| {
            statement.action.iter().any(|allowed| allowed == action)
                && statement.resource.iter().any(|pattern| matches(pattern, resource))
        })
    }
}

/// The name of a bucket, of an object in it, or of all buckets.
fn resource(bucket: Option<&str>, key: Option<&str>) -> String {
    match (bucket, key) {
        (None, _) => "*".to_owned(),
        (Some(bucket), None) => format!("arn:aws:s3:::{bucket}"),
        (Some(bucket), Some(key)) => format!("arn:aws:s3:::{bucket}/{key}"),
    }
}

/// Whether a resource has the form of a pattern, in which `*` is anything.
fn matches(pattern: &str, resource: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == resource,
        Some((before, behind)) => resource.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| matches(behind, &rest[at..]))
        }),
    }
}

/// The action that an operation is, by the service authorization reference of S3.
fn action(operation: &str) -> &'static str {
    match operation {
        "GetObject" | "HeadObject" => "s3:GetObject",
        "PutObject"
        | "CopyObject"
        | "CreateMultipartUpload"
        | "UploadPart"
        | "UploadPartCopy"
        | "CompleteMultipartUpload" => "s3:PutObject",
        "DeleteObject" => "s3:DeleteObject",
        "AbortMultipartUpload" => "s3:AbortMultipartUpload",
        "RestoreObject" => "s3:RestoreObject",
        "ListObjects" | "ListObjectsV2" | "HeadBucket" => "s3:ListBucket",
        "ListMultipartUploads" => "s3:ListBucketMultipartUploads",
        "ListParts" => "s3:ListMultipartUploadParts",
        "ListBuckets" => "s3:ListAllMyBuckets",
        "CreateBucket" => "s3:CreateBucket",
        "DeleteBucket" => "s3:DeleteBucket",
        "GetBucketVersioning" => "s3:GetBucketVersioning",
        "GetObjectLockConfiguration" => "s3:GetBucketObjectLockConfiguration",
        // No document names it, so that a new operation is refused wherever one is in force.
        _ => "an action that is not known",
    }
}
