package streams

import "github.com/millrace-io/millrace/thread/task"

// HandlerForTask adapts a handler to the tasks' form. It exists for package streamstest, which drives tasks itself.
func HandlerForTask(h Handler) task.Handler { return h.forTask() }

// ErrorFromTask gives a task's error the form that [App.Run] would return; nil stays nil. It exists for package streamstest.
func ErrorFromTask(err error) error {
	if err == nil {
		return nil
	}
	return fromThread("", err)
}
