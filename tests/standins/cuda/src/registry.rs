//! Contexts, modules and functions that exist now, by handle.
//!
//! A handle is a number that looks like a pointer: `base + 16 * slot`. A freed slot is the next to
//! be used, so that a stale handle soon means something else, as with NVIDIA's driver.

use std::cell::Cell;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::result::{CUresult, INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND};
use crate::script::{Device, Kernel, Script};

#[derive(Clone, Copy)]
pub(crate) struct Context {
    pub(crate) ordinal: i32,
    pub(crate) device: &'static Device,
    pub(crate) uid: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub(crate) module: usize,
    pub(crate) kernel: &'static Kernel,
    pub(crate) device: &'static Device,
}

struct Slots<T> {
    base: usize,
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T: Copy> Slots<T> {
    const fn new(base: usize) -> Self {
        Self { base, entries: Vec::new(), free: Vec::new() }
    }

    fn add(&mut self, entry: T) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        if let Some(place) = self.entries.get_mut(slot) {
            *place = Some(entry);
        }
        self.base + 16 * slot
    }

    fn get(&self, handle: usize) -> Option<T> {
        let slot = handle.checked_sub(self.base)? / 16;
        self.entries.get(slot).copied().flatten()
    }

    fn remove(&mut self, handle: usize) -> Option<T> {
        let slot = handle.checked_sub(self.base)? / 16;
        let entry = self.entries.get_mut(slot)?.take();
        if entry.is_some() {
            self.free.push(slot);
        }
        entry
    }

    fn remove_where(&mut self, gone: impl Fn(&T) -> bool) {
        for (slot, entry) in self.entries.iter_mut().enumerate() {
            if entry.as_ref().is_some_and(&gone) {
                *entry = None;
                self.free.push(slot);
            }
        }
    }
}

struct Registry {
    contexts: Slots<Context>,
    modules: Slots<Context>,
    functions: Slots<Function>,
    created: u32,
}

static REGISTRY: RwLock<Registry> = RwLock::new(Registry {
    contexts: Slots::new(0x1000_0000),
    modules: Slots::new(0x2000_0000),
    functions: Slots::new(0x3000_0000),
    created: 0,
});

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

fn read() -> RwLockReadGuard<'static, Registry> {
    REGISTRY.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Registry> {
    REGISTRY.write().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread's context, 0 where it has none.
pub(crate) fn current_handle() -> usize {
    CURRENT.get()
}

pub(crate) fn set_current(handle: usize) {
    CURRENT.set(handle);
}

pub(crate) fn context(handle: usize) -> Result<Context, CUresult> {
    read().contexts.get(handle).ok_or(INVALID_CONTEXT)
}

pub(crate) fn current() -> Result<Context, CUresult> {
    context(current_handle())
}

pub(crate) fn add_context(ordinal: i32, device: &'static Device) -> usize {
    let mut registry = write();
    registry.created += 1;
    let uid = registry.created;
    registry.contexts.add(Context { ordinal, device, uid })
}

pub(crate) fn remove_context(handle: usize) -> Result<(), CUresult> {
    if current_handle() == handle {
        set_current(0);
    }
    write().contexts.remove(handle).map(drop).ok_or(INVALID_CONTEXT)
}

pub(crate) fn add_module() -> Result<usize, CUresult> {
    let context = current()?;
    Ok(write().modules.add(context))
}

pub(crate) fn remove_module(handle: usize) -> Result<(), CUresult> {
    let mut registry = write();
    registry.functions.remove_where(|function| function.module == handle);
    registry.modules.remove(handle).map(drop).ok_or(INVALID_HANDLE)
}

/// The handle of a module's kernel; the same one however often it is asked for.
pub(crate) fn function_of(module: usize, name: &std::ffi::CStr) -> Result<usize, CUresult> {
    let mut registry = write();
    let device = registry.modules.get(module).ok_or(INVALID_HANDLE)?.device;
    let kernel = Script::of_this_process()
        .kernels
        .iter()
        .find(|kernel| kernel.name.as_c_str() == name)
        .ok_or(NOT_FOUND)?;
    let functions = &mut registry.functions;
    let known = functions.entries.iter().position(|entry| {
        entry.as_ref().is_some_and(|known| known.module == module && known.kernel == kernel)
    });
    Ok(match known {
        Some(slot) => functions.base + 16 * slot,
        None => functions.add(Function { module, kernel, device }),
    })
}

pub(crate) fn function(handle: usize) -> Result<Function, CUresult> {
    read().functions.get(handle).ok_or(INVALID_HANDLE)
}
