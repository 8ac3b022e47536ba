import com.ibm.mq.MQAsyncStatus;
import com.ibm.mq.MQException;
import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQPutMessageOptions;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import java.util.Hashtable;

/** MQSET, and puts whose answers are not waited for, with MQSTAT. Argument: port. */
public class AsyncPuts {
  static void show(MQQueueManager queueManager) throws Exception {
    MQAsyncStatus status = queueManager.getAsyncStatus();
    System.out.println(
        status.reasonCode + ", " + status.putSuccessCount + " done, " + status.putFailureCount + " failed");
  }

  public static void main(String[] arguments) throws Exception {
    Hashtable<String, Object> properties = new Hashtable<>();
    properties.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
    properties.put(CMQC.PORT_PROPERTY, Integer.parseInt(arguments[0]));
    properties.put(CMQC.CHANNEL_PROPERTY, "APP.SVRCONN");
    properties.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
    MQQueueManager queueManager = new MQQueueManager("QM1", properties);
    MQQueue queue =
        queueManager.accessQueue("ASYNC", CMQC.MQOO_OUTPUT | CMQC.MQOO_INPUT_SHARED | CMQC.MQOO_INQUIRE | CMQC.MQOO_SET);
    MQPutMessageOptions options = new MQPutMessageOptions();
    options.options |= CMQC.MQPMO_ASYNC_RESPONSE;
    for (int inhibited : new int[] {0, 1}) {
      queue.setInhibitPut(inhibited);
      queue.setInhibitGet(inhibited);
      System.out.println("inhibited " + queue.getInhibitPut() + " " + queue.getInhibitGet());
      for (int i = 0; i < 3; i++) {
        MQMessage message = new MQMessage();
        message.writeString("message " + i);
        queue.put(message, options);
      }
      show(queueManager);
    }
    show(queueManager);
    MQGetMessageOptions waits = new MQGetMessageOptions();
    waits.options |= CMQC.MQGMO_WAIT;
    waits.waitInterval = 5_000;
    for (MQGetMessageOptions get : new MQGetMessageOptions[] {new MQGetMessageOptions(), waits}) {
      try {
        queue.get(new MQMessage(), get);
      } catch (MQException error) {
        System.out.println("get " + error.completionCode + " " + error.reasonCode);
      }
    }
    try {
      queue.setTriggerControl(1);
    } catch (MQException error) {
      System.out.println("trigger " + error.reasonCode);
    }
    System.out.println("depth " + queue.getCurrentDepth());
    queueManager.disconnect();
  }
}
