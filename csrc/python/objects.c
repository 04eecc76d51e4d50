/* What caches and the doors of the package need of Python's objects: pyengine._objects.
 *
 * Guarded: functions that run in the default floating-point environment.  A wrapper in Python would
 * take a fifth of a microsecond a call; this one takes some 50 instructions beside those of the call
 * itself.  size_of: bytes of all that an object holds; its callers hold the lock of the caches, which
 * also protects the table of types.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <structmember.h>

#include "environment.h"

typedef struct {
    PyObject_HEAD PyObject *function, *dict, *weak;
} guarded;

static PyObject *method_type; /* types.MethodType, for which the limited API has no constructor */

static PyObject *guarded_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *function;
    guarded *self;

    if (kwargs != NULL && PyDict_Size(kwargs) != 0) {
        PyErr_SetString(PyExc_TypeError, "Guarded takes one function and no keywords");
        return NULL;
    }
    if (!PyArg_UnpackTuple(args, "Guarded", 1, 1, &function)) return NULL;
    if (!PyCallable_Check(function)) {
        PyErr_SetString(PyExc_TypeError, "Guarded takes a function");
        return NULL;
    }
    self = (guarded *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (self == NULL) return NULL;
    Py_INCREF(function);
    self->function = function;
    return (PyObject *)self;
}

static PyObject *guarded_call(PyObject *self, PyObject *args, PyObject *kwargs) {
    pe_environment host;
    PyObject *result;

    pe_environment_enter(&host);
    result = PyObject_Call(((guarded *)self)->function, args, kwargs);
    pe_environment_leave(&host);
    return result;
}

static PyObject *guarded_get(PyObject *self, PyObject *object, PyObject *type) {
    (void)type;
    if (object == NULL || object == Py_None) {
        Py_INCREF(self);
        return self;
    }
    return PyObject_CallFunctionObjArgs(method_type, self, object, NULL);
}

/* Attributes that it lacks are those of its function: __code__, __kwdefaults__ and the like. */
static PyObject *guarded_getattro(PyObject *self, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        found = PyObject_GetAttr(((guarded *)self)->function, name);
    }
    return found;
}

/* The name under which a module holds it, for pickle and copy. */
static PyObject *guarded_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *guarded_repr(PyObject *self) {
    return PyObject_Repr(((guarded *)self)->function);
}

static int guarded_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((guarded *)self)->function);
    Py_VISIT(((guarded *)self)->dict);
    return 0;
}

static int guarded_clear(PyObject *self) {
    Py_CLEAR(((guarded *)self)->function);
    Py_CLEAR(((guarded *)self)->dict);
    return 0;
}

static void guarded_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((guarded *)self)->weak != NULL) PyObject_ClearWeakRefs(self);
    guarded_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMethodDef METHODS[] = {{"__reduce__", guarded_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyMemberDef MEMBERS[] = {{"__dictoffset__", T_PYSSIZET, offsetof(guarded, dict), READONLY, NULL},
                                {"__weaklistoffset__", T_PYSSIZET, offsetof(guarded, weak), READONLY, NULL},
                                {NULL, 0, 0, 0, NULL}};

static PyGetSetDef ATTRIBUTES[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot SLOTS[] = {{Py_tp_new, (void *)guarded_new},
                              {Py_tp_call, (void *)guarded_call},
                              {Py_tp_descr_get, (void *)guarded_get},
                              {Py_tp_getattro, (void *)guarded_getattro},
                              {Py_tp_repr, (void *)guarded_repr},
                              {Py_tp_traverse, (void *)guarded_traverse},
                              {Py_tp_clear, (void *)guarded_clear},
                              {Py_tp_dealloc, (void *)guarded_dealloc},
                              {Py_tp_methods, METHODS},
                              {Py_tp_members, MEMBERS},
                              {Py_tp_getset, ATTRIBUTES},
                              {0, NULL}};

static PyType_Spec SPEC = {.name = "pyengine._objects.Guarded",
                           .basicsize = sizeof(guarded),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR,
                           .slots = SLOTS};

/* ---- sizes ----------------------------------------------------------------------------------------------- */

enum { FIRST = 64, KINDS = 512 }; /* places for the objects of a walk at first, and for types */

typedef struct {
    PyObject **seen; /* an open hash table of all objects found, each with a reference */
    size_t room;     /* its places, a power of 2 */
    PyObject **open; /* those whose references are still to be followed, borrowed from the table */
    size_t count, waiting;
} walk;

/* What is known of a type; those met first stay known, each with a reference. */
typedef struct {
    PyTypeObject *type;
    int is_shared, has_base;
    Py_ssize_t bytes; /* of each object, if all have the same; else -1 */
} kind;

static kind kinds[KINDS];
static size_t kinds_known;
static PyObject *shared; /* types whose objects belong to the program and do not count */
/* Of sys; what counts for objects that do not tell; the method of types all of whose objects are as large. */
static PyObject *getsizeof, *unknown_size, *sizeof_object;

static Py_ssize_t own_size(PyObject *object) {
    PyObject *size = PyObject_CallFunctionObjArgs(getsizeof, object, unknown_size, NULL);
    Py_ssize_t bytes = -1;
    if (size != NULL) bytes = PyLong_AsSsize_t(size);
    Py_XDECREF(size);
    return bytes;
}

/* The size of all objects of a type; -1 if they differ, or with an error. */
static Py_ssize_t same_size(PyObject *object) {
    PyObject *type = (PyObject *)Py_TYPE(object), *method = PyObject_GetAttrString(type, "__sizeof__");
    PyObject *item = PyObject_GetAttrString(type, "__itemsize__");
    const int same = method == sizeof_object && item != NULL && PyObject_IsTrue(item) == 0;
    Py_XDECREF(method);
    Py_XDECREF(item);
    return same ? own_size(object) : -1;
}

static size_t hash_of(const void *object, size_t room) {
    return (size_t)((uintptr_t)object >> 4) * (size_t)0x9E3779B97F4A7C15u >> 16 & (room - 1);
}

static size_t place_of(const walk *w, const PyObject *object) {
    size_t at = hash_of(object, w->room);
    while (w->seen[at] != NULL && w->seen[at] != object) at = (at + 1) & (w->room - 1);
    return at;
}

/* Twice the room: 0, or -1 without memory. */
static int grow(walk *w) {
    PyObject **before = w->seen, **open;
    const size_t room = w->room;
    open = realloc(w->open, room * sizeof *open); /* at most half of the new places are ever taken */
    if (open == NULL) return -1;
    w->open = open;
    w->seen = calloc(2 * room, sizeof *w->seen);
    if (w->seen == NULL) {
        w->seen = before;
        return -1;
    }
    w->room = 2 * room;
    for (size_t i = 0; i < room; i++)
        if (before[i] != NULL) w->seen[place_of(w, before[i])] = before[i];
    free(before);
    return 0;
}

/* What is known of an object's type: 0, or -1 with an error. */
static int look_up(PyObject *object, kind *out) {
    PyTypeObject *type = Py_TYPE(object);
    size_t at = hash_of(type, KINDS);
    while (kinds[at].type != NULL && kinds[at].type != type) at = (at + 1) % KINDS;
    if (kinds[at].type == type) {
        *out = kinds[at];
        return 0;
    }
    out->type = type;
    out->is_shared = PyObject_IsSubclass((PyObject *)type, shared);
    if (out->is_shared < 0) return -1;
    out->has_base = PyObject_HasAttrString(object, "nbytes") && PyObject_HasAttrString(object, "base");
    out->bytes = out->is_shared ? 0 : same_size(object);
    if (PyErr_Occurred()) return -1;
    if (2 * kinds_known < KINDS && kinds[at].type == NULL) {
        Py_INCREF((PyObject *)type);
        kinds[at] = *out;
        kinds_known++;
    }
    return 0;
}

static int found(PyObject *object, void *given) {
    walk *w = given;
    kind known;
    size_t at;
    if (object == NULL || w->seen[at = place_of(w, object)] != NULL) return 0;
    if (look_up(object, &known) != 0) return -1;
    if (known.is_shared) return 0;
    Py_INCREF(object);
    w->seen[at] = object;
    w->open[w->waiting++] = object;
    w->count++;
    if (2 * w->count < w->room) return 0;
    if (grow(w) == 0) return 0;
    PyErr_NoMemory();
    return -1;
}

/* Bytes of one object; puts those it refers to in the list. */
static Py_ssize_t one_size(walk *w, PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    Py_ssize_t bytes;
    kind known;
    if (look_up(object, &known) != 0) return -1;
    bytes = known.bytes >= 0 ? known.bytes : own_size(object);
    if (bytes < 0) return -1;
    if (known.has_base) { /* an array leaves out elements of another object */
        PyObject *base = PyObject_GetAttrString(object, "base");
        const int failed = base == NULL || (base != Py_None && found(base, w) != 0);
        Py_XDECREF(base);
        if (failed) return -1;
    }
    if (PyType_GetFlags(type) & Py_TPFLAGS_HAVE_GC) {
        const traverseproc visit = (traverseproc)PyType_GetSlot(type, Py_tp_traverse);
        if (visit != NULL && visit(object, found, w) != 0) return -1;
    }
    return bytes;
}

static PyObject *size_of(PyObject *module, PyObject *value) {
    walk w = {.room = FIRST};
    PyObject *result = NULL;
    Py_ssize_t total = 0;
    (void)module;
    w.seen = calloc(FIRST, sizeof *w.seen);
    w.open = malloc(FIRST / 2 * sizeof *w.open);
    if (w.seen == NULL || w.open == NULL) PyErr_NoMemory();
    else if (found(value, &w) == 0) {
        while (w.waiting > 0 && total >= 0) {
            const Py_ssize_t bytes = one_size(&w, w.open[--w.waiting]);
            total = bytes < 0 ? -1 : total + bytes;
        }
        if (total >= 0) result = PyLong_FromSsize_t(total);
    }
    for (size_t i = 0; w.seen != NULL && i < w.room; i++) Py_XDECREF(w.seen[i]);
    free(w.seen);
    free(w.open);
    return result;
}

static PyMethodDef FUNCTIONS[] = {
    {"size_of", size_of, METH_O,
     "Bytes of an object and all objects it refers to, except functions, classes and modules."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pyengine._objects",
    .m_doc = "Functions in the default floating-point environment, and sizes of objects.",
    .m_size = -1,
    .m_methods = FUNCTIONS,
};

/* The types whose objects do not count. */
static PyObject *shared_types(PyObject *types, PyObject *guarded_type) {
    PyObject *weakref = PyImport_ImportModule("_weakref"), *result = NULL;
    PyObject *part[4] = {NULL, NULL, NULL, NULL};
    part[0] = PyObject_GetAttrString(types, "ModuleType");
    part[1] = PyObject_GetAttrString(types, "FunctionType");
    part[2] = PyObject_GetAttrString(types, "BuiltinFunctionType");
    if (weakref != NULL) part[3] = PyObject_GetAttrString(weakref, "ref");
    if (part[0] != NULL && part[1] != NULL && part[2] != NULL && part[3] != NULL)
        result = PyTuple_Pack(6, &PyType_Type, guarded_type, part[0], part[1], part[2], part[3]);
    for (int i = 0; i < 4; i++) Py_XDECREF(part[i]);
    Py_XDECREF(weakref);
    return result;
}

PyMODINIT_FUNC PyInit__objects(void) {
    PyObject *module = PyModule_Create(&MODULE), *types = PyImport_ImportModule("types");
    PyObject *type = PyType_FromSpec(&SPEC);

    if (types != NULL && type != NULL) {
        method_type = PyObject_GetAttrString(types, "MethodType");
        shared = shared_types(types, type);
    }
    Py_XDECREF(types);
    getsizeof = PySys_GetObject("getsizeof"); /* borrowed */
    Py_XINCREF(getsizeof);
    unknown_size = PyLong_FromLong(64);
    sizeof_object = PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__sizeof__");
    if (module == NULL || type == NULL || method_type == NULL || shared == NULL || getsizeof == NULL ||
        unknown_size == NULL || sizeof_object == NULL || PyModule_AddObject(module, "Guarded", type) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
