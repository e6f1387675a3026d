//! A stand-in for Sonar's sampling: the same files read, as often, and the same kind of message written.
//!
//!     standin once     one sample to standard output
//!     standin          one sample for each line on standard input; answers with the number of processes
//!
//! Written from a description of what Sonar reads, with the standard library alone. For each process: its directory
//! (owner), stat, statm, status, io, the task directory with a look at every thread, cgroup, and stat twice more
//! around a pause of 100 ms. What it leaves out (logging, GPUs, filters, sending) makes it cheaper than the original.

use std::collections::HashMap;
use std::ffi::CStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, Write as _};
use std::os::raw::c_char;
use std::os::unix::fs::MetadataExt;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PAUSE: Duration = Duration::from_millis(100);
const TICKS: u64 = 100;
const PAGE_KIB: u64 = 4;

/// The beginning of the C library's `struct passwd`, which is all we look at.
#[repr(C)]
struct Passwd {
    name: *const c_char,
}

extern "C" {
    fn getpwuid(uid: u32) -> *const Passwd;
}

struct Process {
    pid: u64,
    parent: u64,
    group: u64,
    uid: u32,
    command: String,
    ticks_own: u64,
    ticks_all: u64,
    started: u64,
    virtual_kib: u64,
    anonymous_kib: u64,
    read_kib: u64,
    written_kib: u64,
    cancelled_kib: u64,
    threads: usize,
    busy: f64,
    job: u64,
}

/// What is wanted of a line of /proc/PID/stat.
struct Stat {
    command: String,
    parent: u64,
    group: u64,
    ticks_own: u64,
    /// With those of its children that ended.
    ticks_all: u64,
    started: u64,
}

impl Stat {
    fn read(pid: u64) -> Option<Stat> {
        let line = text(&format!("{}/stat", pid))?;
        let (open, close) = (line.find('(')?, line.rfind(')')?);
        let words: Vec<&str> = line[close + 1..].split_ascii_whitespace().collect();
        let number = |index: usize| words.get(index).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        let own = number(11) + number(12);
        Some(Stat {
            command: line[open + 1..close].to_string(),
            parent: number(1),
            group: number(2),
            ticks_own: own,
            ticks_all: own + number(13) + number(14),
            started: number(19),
        })
    }
}

fn text(path: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{}", path)).ok()
}

/// The numbered directories below one of /proc's, with their owners.
fn numbered(path: &str) -> Vec<(u64, u32)> {
    let mut found = Vec::new();
    if let Ok(entries) = fs::read_dir(format!("/proc/{}", path)) {
        for entry in entries.flatten() {
            let about = entry.metadata();
            let number = entry.file_name().to_string_lossy().parse::<u64>();
            if let (Ok(about), Ok(number)) = (about, number) {
                found.push((number, about.uid()));
            }
        }
    }
    found
}

/// The first number of the line that begins with a name, from `Name:   123 kB` or `name: 123`.
fn named(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_ascii_whitespace().nth(1)).and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn kib(bytes: u64) -> u64 {
    (bytes + 1023) / 1024
}

fn look(pid: u64, uid: u32) -> Option<Process> {
    let stat = Stat::read(pid)?;
    let statm = text(&format!("{}/statm", pid))?;
    let pages: Vec<u64> = statm.split_ascii_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
    let status = text(&format!("{}/status", pid)).unwrap_or_default();
    let io = text(&format!("{}/io", pid)).unwrap_or_default();
    Some(Process {
        pid,
        parent: stat.parent,
        group: stat.group,
        uid,
        ticks_own: stat.ticks_own,
        ticks_all: stat.ticks_all,
        started: stat.started,
        virtual_kib: pages.get(5).unwrap_or(&0) * PAGE_KIB,
        anonymous_kib: named(&status, "RssAnon:"),
        read_kib: kib(named(&io, "read_bytes:")),
        written_kib: kib(named(&io, "write_bytes:")),
        cancelled_kib: kib(named(&io, "cancelled_write_bytes:")),
        threads: numbered(&format!("{}/task", pid)).len(),
        busy: 0.0,
        job: 0,
        command: stat.command,
    })
}

/// How busy each process is just now, from two looks with a pause between.
fn watch(processes: &mut HashMap<u64, Process>) {
    let before: Vec<(u64, Option<Stat>, Instant)> =
        processes.keys().map(|pid| (*pid, Stat::read(*pid), Instant::now())).collect();
    sleep(PAUSE);
    for (pid, first, then) in before {
        if let (Some(first), Some(second), Some(process)) = (first, Stat::read(pid), processes.get_mut(&pid)) {
            let gained = second.ticks_all.saturating_sub(first.ticks_all) as f64 / TICKS as f64;
            process.busy = gained / then.elapsed().as_secs_f64();
        }
    }
}

/// The Slurm job that the control group names, else the process group.
fn job(process: &Process) -> u64 {
    let groups = text(&format!("{}/cgroup", process.pid)).unwrap_or_default();
    for line in groups.lines() {
        if let Some(start) = line.find("/job_") {
            let number = line[start + 5..].split('/').next().and_then(|word| word.parse().ok());
            return number.unwrap_or(0);
        }
    }
    process.group
}

fn user(names: &mut HashMap<u32, String>, uid: u32) -> String {
    let name = names.entry(uid).or_insert_with(|| unsafe {
        let entry = getpwuid(uid);
        if entry.is_null() {
            format!("_user_{}", uid)
        } else {
            CStr::from_ptr((*entry).name).to_string_lossy().into_owned()
        }
    });
    name.clone()
}

fn quoted(out: &mut String, words: &str) {
    out.push('"');
    for letter in words.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter < ' ' => out.push('?'),
            letter => out.push(letter),
        }
    }
    out.push('"');
}

fn write_process(out: &mut String, process: &Process, uptime: u64) {
    let lived = (uptime * TICKS).saturating_sub(process.started).max(1);
    let mean = process.ticks_own as f64 * 100.0 / lived as f64;
    let _ = write!(out, "{{\"resident_memory\":{},\"virtual_memory\":{},\"cmd\":", process.anonymous_kib, process.virtual_kib);
    quoted(out, &process.command);
    let _ = write!(out, ",\"pid\":{},\"ppid\":{},\"num_threads\":{}", process.pid, process.parent, process.threads);
    let _ = write!(out, ",\"cpu_avg\":{:.1},\"cpu_util\":{:.1}", mean, process.busy * 100.0);
    let _ = write!(out, ",\"cpu_time\":{},\"data_read\":{}", process.ticks_all / TICKS, process.read_kib);
    let _ = write!(out, ",\"data_written\":{},\"data_cancelled\":{}}}", process.written_kib, process.cancelled_kib);
}

/// The number of processes and the message about them.
fn sample() -> (usize, String) {
    let memory = named(&text("meminfo").unwrap_or_default(), "MemTotal:");
    let booted = named(&text("stat").unwrap_or_default(), "btime");
    let load = text("loadavg").unwrap_or_default();
    let disks = text("diskstats").unwrap_or_default().lines().count();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or(0);
    let mut processes = HashMap::new();
    for (pid, uid) in numbered("") {
        if let Some(process) = look(pid, uid) {
            processes.insert(pid, process);
        }
    }
    watch(&mut processes);
    let mut jobs: HashMap<(u32, u64), Vec<u64>> = HashMap::new();
    for process in processes.values_mut() {
        process.job = job(process);
        jobs.entry((process.uid, process.job)).or_default().push(process.pid);
    }
    let mut names = HashMap::new();
    let mut out = String::new();
    let _ = write!(out, "{{\"data\":{{\"type\":\"sample\",\"attributes\":{{\"time\":{},\"memory\":{},\"disks\":{}", now, memory, disks);
    let _ = write!(out, ",\"load\":\"{}\",\"jobs\":[", load.trim());
    for (index, ((uid, job), pids)) in jobs.iter().enumerate() {
        let _ = write!(out, "{}{{\"job\":{},\"user\":", if index > 0 { "," } else { "" }, job);
        quoted(&mut out, &user(&mut names, *uid));
        out.push_str(",\"processes\":[");
        for (place, pid) in pids.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            write_process(&mut out, &processes[pid], now.saturating_sub(booted));
        }
        out.push_str("]}");
    }
    out.push_str("]}}}");
    (processes.len(), out)
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    if std::env::args().nth(1).as_deref() == Some("once") {
        return out.write_all(sample().1.as_bytes());
    }
    let mut nowhere = fs::OpenOptions::new().write(true).open("/dev/null")?;
    for line in io::stdin().lock().lines() {
        line?;
        let (count, message) = sample();
        nowhere.write_all(message.as_bytes())?;
        writeln!(out, "{}", count)?;
        out.flush()?;
    }
    Ok(())
}
