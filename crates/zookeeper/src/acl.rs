//! Who may do what to znodes: access control lists as ZooKeeper's own shell writes them.

use zookeeper_client::{Acl, AuthId, Permission};

/// A text that is not an access control list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an entry lacks its scheme, id or permissions; a list is scheme:id:permissions[,...], as auth::cdrwa for clients with these credentials, or auth::cdrwa,world:anyone:r to let others read, of the permissions c, d, r, w and a"
)]
pub struct AclError;

/// Reads a list. An id may hold colons and commas, as a distinguished name does.
///
/// # Errors
/// When it is not one.
pub fn parse(text: &str) -> Result<Vec<Acl>, AclError> {
    let mut acls = Vec::new();
    let mut rest = Some(text);
    while let Some(unread) = rest {
        // A part that does not end with permissions continues after the comma.
        let mut ends = unread.match_indices(',').map(|(at, _)| at).chain([unread.len()]);
        let entry = ends.find_map(|end| Some((end, read(&unread[..end])?)));
        let (end, acl) = entry.ok_or(AclError)?;
        acls.push(acl);
        rest = unread.get(end + 1..);
    }
    Ok(acls)
}

fn read(entry: &str) -> Option<Acl> {
    let (scheme, rest) = entry.split_once(':')?;
    let (id, permissions) = rest.rsplit_once(':')?;
    if scheme.is_empty() || scheme.contains(',') || permissions.is_empty() {
        return None;
    }
    let permission = permissions.chars().try_fold(Permission::NONE, |all, letter| {
        let one = match letter {
            'c' => Permission::CREATE,
            'd' => Permission::DELETE,
            'r' => Permission::READ,
            'w' => Permission::WRITE,
            'a' => Permission::ADMIN,
            _ => return None,
        };
        Some(all | one)
    });
    Some(Acl::new(permission?, AuthId::new(scheme, id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_entry_by_entry() {
        let read = parse("world:anyone:r,auth::cdrwa,digest:ops:q1/5R2N=:cdrwa,x509:CN=a,O=b:c:rw").unwrap();
        let shown: Vec<_> = read.iter().map(|acl| (acl.scheme(), acl.id(), acl.permission().to_string())).collect();
        let expected = [
            ("world", "anyone", "READ"),
            ("auth", "", "ALL"),
            ("digest", "ops:q1/5R2N=", "ALL"),
            ("x509", "CN=a,O=b:c", "READ|WRITE"),
        ];
        assert_eq!(shown, expected.map(|(scheme, id, permission)| (scheme, id, permission.to_owned())));
        for wrong in [
            "",
            "world:anyone",
            "world:anyone:x",
            "r",
            ":anyone:r",
            "world:anyone:r,",
            ",world:anyone:r",
            "world:anyone:",
        ] {
            assert!(parse(wrong).unwrap_err().to_string().contains("scheme:id:permissions"), "{wrong}");
        }
    }
}
