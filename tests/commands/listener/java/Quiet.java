import com.ibm.mq.MQException;
import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import java.net.URL;

/**
 * A program that is quiet for long. Arguments: the URL of a CCDT; then steps: "wait" (MQGET for so many milliseconds),
 * "take" (MQGET in syncpoint), "idle" (so many milliseconds without a call), each followed by a number.
 */
public class Quiet {
  public static void main(String[] arguments) throws Exception {
    MQQueueManager manager = new MQQueueManager("QM1", new URL(arguments[0]));
    MQQueue queue = manager.accessQueue("Q", CMQC.MQOO_INPUT_AS_Q_DEF | CMQC.MQOO_INQUIRE | CMQC.MQOO_OUTPUT);
    System.out.println("connected");
    for (int i = 1; i < arguments.length; i += 2) {
      int number = Integer.parseInt(arguments[i + 1]);
      if (arguments[i].equals("idle")) {
        Thread.sleep(number);
        System.out.println("depth " + queue.getCurrentDepth());
        continue;
      }
      MQGetMessageOptions options = new MQGetMessageOptions();
      options.waitInterval = number;
      options.options = CMQC.MQGMO_WAIT | CMQC.MQGMO_FAIL_IF_QUIESCING;
      options.options |= arguments[i].equals("take") ? CMQC.MQGMO_SYNCPOINT : CMQC.MQGMO_NO_SYNCPOINT;
      try {
        queue.get(new MQMessage(), options);
        System.out.println("got");
      } catch (MQException e) {
        System.out.println(arguments[i] + " " + e.reasonCode);
      }
    }
    manager.disconnect();
    System.out.println("done");
  }
}
