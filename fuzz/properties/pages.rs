//! What there is to look at.

/// The pages and lists that show a whole tree.
pub const PAGES: [&str; 20] = [
    "/",
    "/jobs",
    "/jobs?limit=3&sort=retries&direction=desc",
    "/jobs?text=qk",
    "/failures",
    "/batches",
    "/access",
    "/locks",
    "/faults",
    "/metrics",
    "/api/v1/overview",
    "/api/v1/history",
    "/api/v1/jobs",
    "/api/v1/failures",
    "/api/v1/batches",
    "/api/v1/access",
    "/api/v1/locks",
    "/api/v1/faults",
    "/api/v1/status",
    "/rules",
];
