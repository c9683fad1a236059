-- The catalogue, as it began. Times are milliseconds since 1970 by the database's clock; digests are JSON.

-- One row: what tells this catalogue from every other.
CREATE TABLE catalogue (
    only_row {int} PRIMARY KEY CHECK (only_row = 1),
    id {uuid} NOT NULL,
    created {int} NOT NULL
){table};

-- Inventory

CREATE TABLE objects (
    id {id},
    ark {text} NOT NULL UNIQUE,
    owner {text} NOT NULL,
    collection {text} NOT NULL,
    title {text},
    creator {text},
    date_said {text},
    created {int} NOT NULL,
    modified {int} NOT NULL,
    current_version {int} NOT NULL
){table};
CREATE INDEX objects_by_collection ON objects (collection, ark);

CREATE TABLE versions (
    id {id},
    object {int} NOT NULL REFERENCES objects (id),
    number {int} NOT NULL CHECK (number > 0),
    job {uuid} NOT NULL UNIQUE,
    batch {uuid},
    submitter {text} NOT NULL,
    message {text} NOT NULL,
    file_count {int} NOT NULL,
    byte_count {int} NOT NULL,
    ingested {int} NOT NULL,
    UNIQUE (object, number)
){table};
CREATE INDEX versions_by_batch ON versions (batch, id);

-- The files of a version that are new in it or carried over; content_path says where the bytes are.
CREATE TABLE files (
    version {int} NOT NULL REFERENCES versions (id),
    path {text} NOT NULL,
    content_path {text} NOT NULL,
    size {int} NOT NULL CHECK (size >= 0),
    digests {text} NOT NULL,
    media_type {text},
    is_billable {flag} NOT NULL,
    PRIMARY KEY (version, path)
){table_by_key};

-- ARKs that jobs have reserved, and whether they are registered where identifiers are looked up.
CREATE TABLE identifiers (
    ark {text} PRIMARY KEY,
    job {uuid} NOT NULL UNIQUE,
    owner {text} NOT NULL,
    reserved {int} NOT NULL,
    registered {int}
){table_by_key};

CREATE TABLE local_ids (
    owner {text} NOT NULL,
    local_id {text} NOT NULL,
    ark {text} NOT NULL,
    job {uuid} NOT NULL,
    PRIMARY KEY (owner, local_id)
){table_by_key};
CREATE INDEX local_ids_by_ark ON local_ids (ark, owner, local_id);

CREATE TABLE deposits (
    batch {uuid} PRIMARY KEY,
    depositor {text} NOT NULL,
    idempotency_key {text},
    profile {text} NOT NULL,
    object_count {int} NOT NULL,
    byte_count {int} NOT NULL,
    received {int} NOT NULL,
    outcome {text},
    ended {int},
    UNIQUE (depositor, idempotency_key)
){table};
CREATE INDEX deposits_by_depositor ON deposits (depositor, received, batch);

-- Mails and callbacks, kept until they are delivered, and for a time after that.
CREATE TABLE outbox (
    id {id},
    message {text} NOT NULL UNIQUE,
    kind {text} NOT NULL,
    subject {uuid} NOT NULL,
    recipient {text} NOT NULL,
    content {text} NOT NULL,
    created {int} NOT NULL,
    due {int} NOT NULL,
    attempts {int} NOT NULL,
    error {text},
    delivered {int}
){table};
CREATE INDEX outbox_due ON outbox (due, id) WHERE delivered IS NULL;

-- Content

CREATE TABLE items (
    id {id},
    account {text} NOT NULL,
    space {text} NOT NULL,
    key {bytes} NOT NULL,
    UNIQUE (account, space, key)
){table};

-- The content index: what we know of each copy of an item.
CREATE TABLE copies (
    item {int} NOT NULL REFERENCES items (id),
    store {text} NOT NULL,
    size {int} NOT NULL,
    digests {text} NOT NULL,
    etag {text},
    properties {text},
    seq {int} NOT NULL,
    is_deleted {flag} NOT NULL,
    proof {text},
    proven {int},
    PRIMARY KEY (item, store)
){table_by_key};

-- The last settled event of each copy: a witness of its own beside the content index.
CREATE TABLE audit_head (
    item {int} NOT NULL REFERENCES items (id),
    store {text} NOT NULL,
    seq {int} NOT NULL,
    size {int} NOT NULL,
    digests {text} NOT NULL,
    is_deleted {flag} NOT NULL,
    PRIMARY KEY (item, store)
){table_by_key};

-- Changes of content that are under way. An empty key is the space itself.
CREATE TABLE intents (
    id {uuid} PRIMARY KEY,
    holder {uuid} NOT NULL,
    lease_end {int} NOT NULL,
    user_name {text} NOT NULL,
    change {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    key {bytes} NOT NULL,
    etag {text},
    size {int},
    digests {text} NOT NULL,
    source_space {text},
    source_key {bytes},
    upload {text},
    properties {text},
    UNIQUE (store, space, key)
){table};
CREATE INDEX intents_by_lease ON intents (store, lease_end);

-- Intents that led to no event, kept for a time so that one that is settled again is known.
CREATE TABLE dropped_intents (
    id {uuid} PRIMARY KEY,
    dropped {int} NOT NULL
){table_by_key};
CREATE INDEX dropped_intents_by_time ON dropped_intents (dropped);

-- Each event has the hash of the one before it.
CREATE TABLE audit_log (
    seq {int} PRIMARY KEY,
    time {int} NOT NULL,
    intent {uuid} NOT NULL UNIQUE,
    user_name {text} NOT NULL,
    change {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    key {bytes} NOT NULL,
    size {int},
    digests {text} NOT NULL,
    etag {text},
    source_space {text},
    source_key {bytes},
    properties {text},
    why {text},
    previous_hash {bytes} NOT NULL
){table};
CREATE INDEX audit_log_by_store ON audit_log (store, seq);
CREATE INDEX audit_log_by_space ON audit_log (store, space, seq);
CREATE INDEX audit_log_by_key ON audit_log (store, space, key, seq);
CREATE INDEX audit_log_by_user ON audit_log (user_name, seq);
CREATE INDEX audit_log_observed ON audit_log (seq) WHERE change = 'observed';

-- One row: the last event. Whoever appends locks it, so that the order of events is that of commits.
CREATE TABLE audit_chain (
    only_row {int} PRIMARY KEY CHECK (only_row = 1),
    seq {int} NOT NULL,
    time {int} NOT NULL,
    hash {bytes} NOT NULL
){table};

-- The mill

CREATE TABLE accounts (
    name {text} PRIMARY KEY,
    configuration {text} NOT NULL,
    last_seen {int} NOT NULL
){table};

-- One open task for each subject and destination: an item, or a page of a space from its first key on.
CREATE TABLE tasks (
    id {id},
    queue {text} NOT NULL,
    kind {text} NOT NULL,
    account {text} NOT NULL,
    space {text} NOT NULL,
    key {bytes} NOT NULL,
    destination {text} NOT NULL,
    priority {int} NOT NULL,
    generation {int} NOT NULL,
    state {text} NOT NULL,
    visible {int} NOT NULL,
    holder {uuid},
    worker {text},
    etag {text},
    attempts {int} NOT NULL,
    rounds {int} NOT NULL,
    errors {text} NOT NULL,
    created {int} NOT NULL,
    UNIQUE (kind, account, space, key, destination)
){table};
CREATE INDEX tasks_by_time ON tasks (queue, visible, id);

CREATE TABLE bit_log (
    id {id},
    time {int} NOT NULL,
    item {int} NOT NULL REFERENCES items (id),
    store {text} NOT NULL,
    loop {int} NOT NULL,
    result {text} NOT NULL,
    proof {text},
    content {text},
    provider {text},
    content_index {text},
    audit {text},
    detail {text}
){table};
CREATE INDEX bit_log_by_item ON bit_log (item, store, id);
CREATE INDEX bit_log_by_loop ON bit_log (loop, result, id);

CREATE TABLE reports (
    id {id},
    account {text} NOT NULL,
    store {text} NOT NULL,
    space {text} NOT NULL,
    loop {int} NOT NULL,
    created {int} NOT NULL,
    is_success {flag} NOT NULL,
    coverage {text} NOT NULL,
    previous_hash {bytes} NOT NULL,
    UNIQUE (account, store, space, loop)
){table};
CREATE INDEX reports_by_time ON reports (account, created, id);

-- Producers: who leads each, and how far its loop is. A save names the epoch.
CREATE TABLE loops (
    producer {text} PRIMARY KEY,
    epoch {int} NOT NULL,
    holder {uuid},
    lease_end {int} NOT NULL,
    loop {int} NOT NULL,
    started {int},
    next_start {int}
){table};

CREATE TABLE morsels (
    producer {text} NOT NULL REFERENCES loops (producer),
    account {text} NOT NULL,
    space {text} NOT NULL,
    source {text} NOT NULL,
    destination {text} NOT NULL,
    marker {bytes},
    is_deletes_done {flag} NOT NULL,
    error {text},
    PRIMARY KEY (producer, account, space, source, destination)
){table_by_key};

CREATE TABLE policies (
    id {id},
    account {text} NOT NULL,
    time {int} NOT NULL,
    user_name {text} NOT NULL,
    reason {text} NOT NULL,
    content {text} NOT NULL
){table};
CREATE INDEX policies_by_account ON policies (account, id);

-- Counters: the figure is the folded value and all deltas that are not folded yet.

CREATE TABLE counters (
    name {text} NOT NULL,
    scope {text} NOT NULL,
    value {int} NOT NULL,
    PRIMARY KEY (name, scope)
){table_by_key};

CREATE TABLE counter_deltas (
    id {id},
    name {text} NOT NULL,
    scope {text} NOT NULL,
    delta {int} NOT NULL
){table};
