//! Files that decide whom this program trusts and what it may do, and those that hold its records: anyone who can
//! change or replace one of them could let himself do anything.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{OFlags, StatVfsMountFlags};

/// The permission of everyone to write.
const OTHERS_WRITE: u32 = 0o002;

/// In a directory with this bit only the owner of a file (or of the directory) can replace it, no matter who may write
/// the directory.
const STICKY: u32 = 0o1000;

/// The most symbolic links on the way to a file, as the kernel has it.
const MOST_LINKS: usize = 40;

/// Reads a file, if it is a plain one of that many bytes at most, and neither it nor the way to it can be changed by
/// everyone.
///
/// # Errors
/// When it cannot be read, or is not such a file.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    // A pipe would be waited for otherwise.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if is_writable_by_all(&facts) && !is_read_only(path)? {
        return Err(io::Error::other("every user of this machine may write it; chmod o-w"));
    }
    check_way(path, &facts)?;
    let mut bytes = Vec::new();
    file.by_ref().take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(io::Error::other(format!("it is larger than {} MiB", most_bytes >> 20)));
    }
    Ok(bytes)
}

/// Refuses a path that users other than root and our own can make lead to another file than the one that was opened by
/// it: by way of a directory that everyone may write, be it one that a symbolic link on the way leads through.
///
/// # Errors
/// Names the directory that everyone may write or what others own in it, or reports that the path led elsewhere
/// meanwhile.
fn check_way(path: &Path, opened: &Metadata) -> io::Result<()> {
    let found = walk(path, is_root_or_us, is_read_only)?;
    if (found.dev(), found.ino()) == (opened.dev(), opened.ino()) {
        return Ok(());
    }
    Err(io::Error::other("it was replaced by another file while it was being opened; try again"))
}

/// Follows a path as the kernel does, link by link, checks each directory on the way, and returns what it leads to.
fn walk(
    path: &Path,
    is_trusted: impl Fn(u32) -> bool,
    is_read_only: impl Fn(&Path) -> io::Result<bool>,
) -> io::Result<Metadata> {
    let mut ahead = steps(&std::path::absolute(path)?);
    // Without symbolic links in it, so that its parent is what `..` means.
    let mut reached = PathBuf::from("/");
    let mut facts = fs::symlink_metadata(&reached)?;
    let mut links = 0;
    while let Some(step) = ahead.pop() {
        if step == ".." {
            reached.pop();
            facts = fs::symlink_metadata(&reached)?;
            continue;
        }
        let next = reached.join(step);
        let next_facts = fs::symlink_metadata(&next)?;
        if is_writable_by_all(&facts) && !is_read_only(&reached)? {
            check_step((&reached, &facts), (&next, &next_facts), &is_trusted)?;
        }
        if next_facts.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(rustix::io::Errno::LOOP.into());
            }
            let target = fs::read_link(&next)?;
            if target.is_absolute() {
                reached = PathBuf::from("/");
                facts = fs::symlink_metadata(&reached)?;
            }
            ahead.extend(steps(&target));
        } else {
            (reached, facts) = (next, next_facts);
        }
    }
    Ok(facts)
}

/// Refuses a step out of a directory that everyone may write, unless it is sticky and what comes next belongs to a
/// trusted user: no other user can replace that.
fn check_step(
    (directory, facts): (&Path, &Metadata),
    (next, next_facts): (&Path, &Metadata),
    is_trusted: impl Fn(u32) -> bool,
) -> io::Result<()> {
    let [directory, next] = [directory, next].map(|path| path.to_string_lossy().escape_debug().to_string());
    if facts.mode() & STICKY == 0 {
        let why = format!(
            "every user of this machine may write to the directory {directory}, and so replace the file; chmod o-w"
        );
        return Err(io::Error::other(why));
    }
    if is_trusted(next_facts.uid()) {
        return Ok(());
    }
    let owner = next_facts.uid();
    let why = format!(
        "{next} belongs to another user (uid {owner}), who can replace it, in a directory that every user may write to; use a directory that only root or the user of this process may write to"
    );
    Err(io::Error::other(why))
}

/// The names on a path, the first one last.
fn steps(path: &Path) -> Vec<OsString> {
    let is_step = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_step).rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// Whether nothing can be changed there, whatever the modes are: the volumes of a `ConfigMap` or a `Secret` in
/// Kubernetes have directories with mode 0777 and are mounted so.
fn is_read_only(directory: &Path) -> io::Result<bool> {
    Ok(rustix::fs::statvfs(directory)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Opens a file of records for appending, which is made where it is not there, readable for its owner alone. One that
/// is there is accepted only as a plain file of ours or root's that no other user can write and not everyone can read.
///
/// # Errors
/// When it cannot be opened, is a symbolic link, or belongs to or is open to others.
pub fn append(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    let opened = options.create(true).append(true).read(true).mode(0o600).custom_flags(flags).open(path);
    let file = opened.map_err(|why| match rustix::io::Errno::from_io_error(&why) {
        Some(rustix::io::Errno::LOOP) => io::Error::other("it is a symbolic link; name the file that it leads to"),
        _ => why,
    })?;
    let facts = file.metadata()?;
    let refuse = |why: &str| Err(io::Error::other(why.to_owned()));
    if !facts.is_file() {
        return refuse("it is not a file");
    }
    match facts.mode() {
        mode if mode & 0o022 != 0 => return refuse("others than its owner may write it; chmod go-w"),
        mode if mode & 0o004 != 0 => return refuse("every user of this machine may read it; chmod o-r"),
        _ => {}
    }
    if !is_root_or_us(facts.uid()) {
        return refuse("it belongs to another user, who could change it");
    }
    check_way(path, &facts)?;
    Ok(file)
}

fn is_root_or_us(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}

fn is_writable_by_all(facts: &Metadata) -> bool {
    facts.mode() & OTHERS_WRITE != 0
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn what_everyone_can_replace_is_not_read_by_whichever_path() {
        let root = tempfile::tempdir().unwrap();
        let [open, closed] = ["open", "closed"].map(|name| root.path().join(name));
        for folder in [&open, &closed] {
            fs::create_dir_all(folder.join("inner")).unwrap();
            fs::write(folder.join("inner/file"), "x").unwrap();
        }
        symlink(closed.join("inner"), open.join("link")).unwrap();
        symlink(open.join("inner/file"), closed.join("link")).unwrap();
        // Neither as it is given nor as it is in the end does this one lead through the open directory.
        symlink("../open/link", closed.join("around")).unwrap();
        let paths =
            [open.join("inner/file"), open.join("link/file"), closed.join("link"), closed.join("around/../inner/file")];
        let refused = |path: &Path| read(path, 10).err().map(|why| why.to_string());
        for mode in [0o755, 0o775, 0o1777] {
            set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            assert_eq!(paths.each_ref().map(|path| refused(path)), [const { None }; 4], "{mode:o}");
        }
        set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        for path in &paths {
            let why = refused(path).unwrap();
            assert!(why.contains(open.to_str().unwrap()) && why.contains("chmod o-w"), "{}: {why}", path.display());
        }
        assert_eq!(refused(&closed.join("inner/file")), None);
        assert!(refused(&closed).unwrap().contains("not a file"));
        fs::write(closed.join("inner/file"), "x".repeat(11)).unwrap();
        assert!(refused(&closed.join("inner/file")).unwrap().contains("larger"));
    }

    #[test]
    fn below_a_directory_that_everyone_may_write_only_what_is_ours_or_cannot_be_changed_is_trusted() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir_all(path("open/inner")).unwrap();
        fs::write(path("open/inner/file"), "x").unwrap();
        symlink("inner/file", path("open/link")).unwrap();
        let us = fs::metadata(root.path()).unwrap().uid();
        let stranger = us + 1;
        let open = path("open").canonicalize().unwrap();
        // What is above it is not of this test: everyone may write there too.
        let refused = |way: &str, trusted: u32, is_open_read_only: bool| {
            let is_read_only = |directory: &Path| Ok(directory != open || is_open_read_only);
            walk(&path(way), |owner| owner == trusted, is_read_only).err().map(|why| why.to_string())
        };
        for (mode, expected) in [(0o755, None), (0o777, Some("chmod o-w")), (0o1777, Some("belongs to another user"))] {
            set_permissions(path("open"), Permissions::from_mode(mode)).unwrap();
            for way in ["open/inner/file", "open/link"] {
                let why = refused(way, stranger, false);
                assert_eq!(why.is_some(), expected.is_some(), "{mode:o} {way}: {why:?}");
                assert!(expected.is_none_or(|expected| why.unwrap().contains(expected)), "{mode:o} {way}");
                assert_eq!(refused(way, stranger, true), None, "{mode:o} {way}");
            }
        }
        assert_eq!(refused("open/inner/file", us, false), None);
        assert_eq!([0, us, stranger].map(is_root_or_us), [true, true, false]);
    }

    #[test]
    fn a_directory_is_read_only_where_the_kernel_lists_its_mount_as_that() {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounts: Vec<_> = mounts.lines().filter_map(|line| line.split_once(" - ")).collect();
        let mut compared = 0;
        for (place, (mount, volume)) in mounts.iter().enumerate() {
            let mount: Vec<_> = mount.split(' ').collect();
            let is_covered = |(later, _): &(&str, &str)| later.split(' ').nth(4) == Some(mount[4]);
            let Ok(found) = is_read_only(Path::new(mount[4])) else { continue };
            if !mounts[place + 1..].iter().any(is_covered) {
                let has = |options: &str| options.split(',').any(|option| option == "ro");
                let is_listed = has(mount[5]) || volume.split(' ').nth(2).is_some_and(has);
                assert_eq!(found, is_listed, "{mount:?} {volume}");
                compared += 1;
            }
        }
        assert!(compared > 0 && !is_read_only(tempfile::tempdir().unwrap().path()).unwrap());
    }

    #[test]
    fn what_was_opened_is_what_the_path_leads_to() {
        let root = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| root.path().join(name));
        for path in [&one, &other] {
            fs::write(path, "x").unwrap();
        }
        let opened = fs::metadata(&one).unwrap();
        check_way(&one, &opened).unwrap();
        assert!(check_way(&other, &opened).unwrap_err().to_string().contains("replaced"));
        fs::remove_file(&one).unwrap();
        assert!(check_way(&one, &opened).is_err());
    }

    #[test]
    fn records_go_to_a_file_of_our_own_and_to_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let refused = |name: &str| append(&path(name)).err().map(|why| why.to_string());
        assert_eq!(refused("new"), None);
        assert_eq!(fs::metadata(path("new")).unwrap().permissions().mode() & 0o777, 0o600);
        symlink(path("new"), path("link")).unwrap();
        assert!(refused("link").unwrap().contains("symbolic link"));
        symlink(path("none"), path("dangling")).unwrap();
        assert!(refused("dangling").unwrap().contains("symbolic link") && !path("none").exists());
        for (mode, expected) in [(0o600, None), (0o640, None), (0o644, Some("may read")), (0o660, Some("may write"))] {
            set_permissions(path("new"), Permissions::from_mode(mode)).unwrap();
            let why = refused("new");
            assert_eq!(why.is_some(), expected.is_some(), "{mode:o}: {why:?}");
            assert!(expected.is_none_or(|expected| why.unwrap().contains(expected)), "{mode:o}");
        }
        fs::create_dir(path("folder")).unwrap();
        assert!(refused("folder").is_some());
    }
}
